// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include "shardwise/core/config.hpp"

/// \file
/// How the sums of replicated rows travel between their copies: touched rows, or all of them.

namespace shardwise::inline SHARDWISE_ABI {

/// What a message with sums of rows holds. Same sums, same bits, and rows that nobody touched are not updated, under
/// either.
enum class RowReduction : std::uint8_t {
    touched,  ///< touched rows, each with its number: 4 bytes a row more
    dense,    ///< all rows that its receiver may be sent, and a bit a row that says which were touched
};

/// Rows of one table and tier that a step is expected to touch.
struct RowTouches {
    std::int64_t rank = 0;   ///< by the samples of one rank
    std::int64_t host = 0;   ///< by those of all ranks of a host
    std::int64_t world = 0;  ///< by those of all ranks

    friend bool operator==(const RowTouches&, const RowTouches&) = default;
};

/// Which sums of a table's rows travel dense, by whose sums they are.
struct DenseSums {
    bool rank = false;
    bool host = false;
    bool world = false;

    friend bool operator==(const DenseSums&, const DenseSums&) = default;
};

/// Bytes of a row's sum on the way up the tree, and on the way back.
struct SumBytes {
    std::int64_t partial = 0;
    std::int64_t whole = 0;
};

/// Whichever moves less: of `rows` rows the touched ones with 4 bytes each beside their sums, or all, with a bit each.
[[nodiscard]] constexpr DenseSums cheaper_sums(std::int64_t rows, const RowTouches& touches,
                                               const SumBytes& bytes) noexcept {
    const auto dense = [&](std::int64_t touched, std::int64_t sum) {
        const auto row = static_cast<double>(sum);
        return static_cast<double>(touched) * (row + 4.0) > static_cast<double>(rows) * (row + 0.125);
    };
    return {.rank = dense(touches.rank, bytes.partial),
            .host = dense(touches.host, bytes.partial),
            .world = dense(touches.world, bytes.whole)};
}

}  // namespace shardwise::inline SHARDWISE_ABI
