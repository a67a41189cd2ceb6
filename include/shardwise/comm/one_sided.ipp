// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>

#include "shardwise/comm/one_sided.hpp"
#include "shardwise/core/at.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

namespace shardwise::inline SHARDWISE_ABI::detail {

SHARDWISE_INLINE void check_layout(const SlotLayout& layout, int ranks) {
    const auto count = static_cast<std::size_t>(ranks);
    if (layout.from.size() != count || layout.to.size() != count)
        throw BadInput{concat({"a layout of slots for messages from ", layout.from.size(), " ranks and to ",
                               layout.to.size(), ": the world has ", ranks, ", give a size for each"})};
    if (layout.slots < 1) throw BadInput{concat({layout.slots, " slots a pair of ranks: give at least 1"})};
    for (const std::vector<std::int64_t>* sizes : {&layout.from, &layout.to})
        for (const std::int64_t size : *sizes)
            if (size < 0) throw BadInput{concat({"slots of ", size, " bytes: give 0 or more"})};
    if (std::max(layout.bytes(), layout.bytes_leaving()) == SlotLayout::too_many)
        throw BadInput{concat({layout.slots,
                               " slots a pair of ranks, which take more bytes than can be counted: give a smaller lag, "
                               "or smaller messages"})};
}

SHARDWISE_INLINE void check_agreement(const SlotLayout& mine, int rank, const SlotLayout& theirs, int peer) {
    const auto differ = [&](const char* what, std::int64_t here, std::int64_t there) {
        if (here != there)
            throw Mismatch{concat({"open slots: ", what, " is ", here, " on rank ", rank, " and ", there, " on rank ",
                                   peer, ": give all ranks the same layers, with the same options"})};
    };
    differ("the number of slots a pair of ranks", mine.slots, theirs.slots);
    differ("the bytes of a slot between them", at(mine.to, peer), at(theirs.from, rank));
    differ("the bytes of a slot between them", at(mine.from, peer), at(theirs.to, rank));
}

}  // namespace shardwise::inline SHARDWISE_ABI::detail
