// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "shardwise/comm/wire.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/embedding/kernels/fold.hpp"
#include "shardwise/embedding/steps/dealt_rows.hpp"
#include "shardwise/sharding/policy.hpp"

/// \file
/// What arrives at a level of the sums of copied rows: sums, of touched rows or of all that are dealt.

namespace shardwise::inline SHARDWISE_ABI::steps::detail {

/// What the sums are that leave: floats that a wire may round, or doubles.
struct RowElement {
    bool wide;  ///< doubles
    const Codec* codec;

    [[nodiscard]] std::int64_t in_memory() const { return wide ? 8 : 4; }
    [[nodiscard]] std::int64_t on_wire() const { return wide ? 8 : codec->bytes; }
    [[nodiscard]] bool exact() const { return wide || codec->exact; }
};
[[nodiscard]] inline RowElement row_element(const OrderTraits& order, const Codec& codec, bool gather) {
    return {.wide = !gather && order.wide && codec.exact, .codec = &codec};
}

/// The sums of one shard from one member.
struct RowArrival {
    int member = 0;
    std::size_t set = 0;
    std::int64_t count = 0;              // touched rows
    std::int64_t sent = 0;               // sums
    const LocalRow* rows = nullptr;      // (count); dense: none, but
    const std::byte* touched = nullptr;  // a bit for each of
    DealtRows dealt = {};
    const std::byte* sums = nullptr;  // (sent, dim)

    /// use(row, place of its sum)
    template <class Use>
    void for_each(Use use) const {
        if (touched == nullptr) {
            for (std::int64_t i = 0; i < count; ++i)
                use(rows[i], i);
            return;
        }
        for (std::int64_t first = 0; first < sent; first += 8)
            for (auto bits = std::to_integer<unsigned>(touched[first / 8]); bits != 0; bits &= bits - 1) {
                const std::int64_t place = first + std::countr_zero(bits);
                use(dealt.row(place), place);
            }
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps::detail
