// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/core/error.hpp"
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

SHARDWISE_INLINE const Program& LayerTraits::program_of(BatchKind kind) const {
    if (kind == BatchKind::any) return program;
    if (!hot_program.segments.empty()) return hot_program;
    throw BadInput{
        "hot batches for a layer whose first tier is not on every rank: give it Sharding<Tiered<DP, ...>>, by name the "
        "tiers dp and row or dp, flex and row"};
}

}  // namespace shardwise::inline SHARDWISE_ABI
