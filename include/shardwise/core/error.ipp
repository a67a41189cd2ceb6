// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/core/error.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE Error::Error(const std::string& what, int exit_status)
    : std::runtime_error{what}, exit_status_{exit_status} {}

}  // namespace shardwise::inline SHARDWISE_ABI
