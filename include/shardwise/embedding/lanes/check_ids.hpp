// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/lanes/batch.hpp"
#include "shardwise/embedding/lanes/coalesced.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// Ids that are no rows, and weights that are no numbers.

namespace shardwise::inline SHARDWISE_ABI::steps {

/// Whether all ids are rows of a table that has so many; without a branch an id.
template <class Id, std::size_t Count>
[[nodiscard]] bool are_rows(std::span<const Id, Count> ids, std::int64_t rows) noexcept {
    const std::uint64_t last = static_cast<std::uint64_t>(rows) - 1;
    std::uint64_t wrong = 0;  // by its highest bit, and not a bool an id, for which GCC 12 takes several instructions
    for (const Id id : ids) {
        const auto row = static_cast<std::uint64_t>(static_cast<std::int64_t>(id));
        wrong |= row | (last - row);
    }
    return wrong >> 63U == 0;
}

/// The first id or weight of a feature that is wrong, in words; empty when there is none.
/// \param number  the feature's in the batch \param rows  of the table
[[nodiscard]] std::string first_wrong_id(const BatchView& batch, int number, const std::string& feature,
                                         const std::string& table, std::int64_t rows);

/// What is wrong with a batch that weighs ids of a sequence.
inline constexpr const char* weights_of_a_sequence =
    "per-sample weights with Pooling<None>: a sequence has nothing to weigh; give no weights";

/// The first weight of a sequence beside weighted bags that is not 1, in words; empty when there is none.
[[nodiscard]] std::string first_weighed_id(const BatchView& batch, int number, const std::string& feature);

/// All of that for a batch of a layer whose requests are coalesced.
[[nodiscard]] std::string first_wrong_request(const BatchView& batch, const CoalescedTables& tables);

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/lanes/check_ids.ipp"
#endif
