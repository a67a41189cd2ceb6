// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/jagged.hpp"
#include "shardwise/embedding/lanes/batch.hpp"
#include "shardwise/planning/access_profile.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// What a cache is to samples: which of them it serves alone, and which of its rows they use (SCARS, Figure 4).

namespace shardwise::inline SHARDWISE_ABI {

/// Counts samples by what they look up in the hottest rows of all tables.
///
/// Not collective; counts of ranks and of parts of the data add up. Memory: 16 to 32 bytes a cached row.
class CachedSamples {
  public:
    /// \param profile  says which rows are the hottest, as hottest_rows() orders them \param tables  those of the
    /// profile, with their features \param rows  in the cache \param parts  of equal size, from the hottest on
    /// \throws BadInput for a profile of other tables, fewer than one row or part, more parts than rows, and more rows
    /// than the profile saw
    CachedSamples(const AccessProfile& profile, std::vector<TableConfig> tables, std::int64_t rows, int parts = 4);

    /// Counts samples [first, last) of a batch, whose features are in the order of the tables'.
    /// \throws BadInput as a layer does, naming feature, sample and id, and for samples that it has not
    template <class Id>
    void add(const JaggedView<Id>& batch, std::int64_t first, std::int64_t last) {
        batch_.bind(batch, features_);
        count(first, last);
    }
    template <class Id>
    void add(const JaggedView<Id>& batch) {
        add(batch, 0, batch.samples);
    }

    [[nodiscard]] std::int64_t samples() const noexcept { return samples_; }
    /// Samples all of whose rows are cached: what hot batches have.
    [[nodiscard]] std::int64_t hot() const noexcept { return hot_; }
    /// (part): samples that look up a row of it.
    [[nodiscard]] std::span<const std::int64_t> touching() const noexcept { return touching_; }

  private:
    void count(std::int64_t first, std::int64_t last);

    std::vector<TableConfig> tables_;
    std::vector<std::string> features_;
    std::vector<std::size_t> table_of_;                           // (feature)
    std::vector<std::unordered_map<std::int64_t, int>> part_of_;  // (table): of a cached row
    steps::BatchView batch_;
    std::vector<std::int64_t> positions_;  // (feature): the next id among the batch's values
    std::int64_t samples_ = 0;
    std::int64_t hot_ = 0;
    std::vector<std::int64_t> touching_;
};

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/planning/cached_samples.ipp"
#endif
