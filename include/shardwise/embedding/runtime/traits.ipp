// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/embedding/runtime/traits.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE std::string name_of(Pools pools) {
    switch (pools) {
        case Pools::sum:
            return "sum";
        case Pools::mean:
            return "mean";
        case Pools::none:
            return "none";
        case Pools::by_table:
            break;
    }
    return "by_table";
}

}  // namespace shardwise::inline SHARDWISE_ABI
