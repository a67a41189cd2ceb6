// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/data/criteo_line.hpp"

/// \file
/// The tables that the 26 categories of Criteo's click logs are looked up in.

namespace shardwise::inline SHARDWISE_ABI {

/// The number of rows of each category's table. \param rows  of each, or one number for all
/// \throws BadInput when their number is neither 1 nor 26, or one is not positive
[[nodiscard]] inline std::array<std::int64_t, criteo_categories> criteo_table_rows(
    const std::vector<std::int64_t>& rows) {
    if (rows.size() != 1 && rows.size() != criteo_categories)
        throw BadInput{concat({"rows of ", rows.size(), " tables: give 26 numbers, or one for all"})};
    std::array<std::int64_t, criteo_categories> each{};
    for (std::size_t f = 0; f != criteo_categories; ++f) {
        each[f] = rows[rows.size() == 1 ? 0 : f];
        if (each[f] < 1)
            throw BadInput{
                concat({"a table of ", each[f], " rows for ",
                        criteo_column_name(static_cast<int>(f) + 2 + criteo_integers), ": give at least 1"})};
    }
    return each;
}

}  // namespace shardwise::inline SHARDWISE_ABI
