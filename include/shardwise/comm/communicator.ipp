// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/comm/communicator.hpp"
#include "shardwise/core/text.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE std::string describe(const Label& label) {
    return concat({"step '", label.step, "' of flight ", label.flight});
}

SHARDWISE_INLINE std::string describe_with_place(const Label& label) {
    return concat({describe(label), " (", label.where.file, ":", label.where.line, ")"});
}

}  // namespace shardwise::inline SHARDWISE_ABI
