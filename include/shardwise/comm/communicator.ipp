// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/comm/communicator.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE std::string describe(const Label& label) {
    return "step '" + std::string{label.step} + "' of flight " + std::to_string(label.flight);
}

SHARDWISE_INLINE std::string describe_with_place(const Label& label) {
    return describe(label) + " (" + label.where.file + ":" + std::to_string(label.where.line) + ")";
}

}  // namespace shardwise::inline SHARDWISE_ABI
