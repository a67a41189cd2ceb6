// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/jagged.hpp"
#include "shardwise/embedding/lanes/batch.hpp"
#include "shardwise/planning/access_profile.hpp"
#include "shardwise/planning/row_counter.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// From batches to an access profile.

namespace shardwise::inline SHARDWISE_ABI {

/// How look-ups are counted.
struct CountingOptions {
    std::int64_t counters = 0;  ///< rows that are counted at once, of each table (see RowCounter); 0: all, exactly
};

/// Counts what batches look up: each rank its own, or one all of them. What it is given is what a layer with these
/// tables is given, so that whoever trains can count, too; several features of a table count together.
///
/// Not collective, not thread safe. Memory: that of a RowCounter a table. Cost: a pass over the ids to check them, and
/// a RowCounter's look-up each.
class AccessCounter {
  public:
    /// \param tables  name, rows and features, as a layer has them; dimensions are not looked at
    /// \throws BadInput for a table without a name or a row, and for names of tables or features that stand twice
    explicit AccessCounter(std::vector<TableConfig> tables, CountingOptions options = {});

    /// Counts a batch. Its features are in the order of the tables', or named by its keys; weights change nothing.
    /// \throws BadInput as a layer does, naming feature, sample and id; then nothing of the batch was counted
    template <class Id>
    void add(const JaggedView<Id>& batch) {
        add(batch, 0, batch.samples);
    }
    /// Counts samples [first, last) of a batch. \throws BadInput also when these are none of its samples
    template <class Id>
    void add(const JaggedView<Id>& batch, std::int64_t first, std::int64_t last) {
        batch_.bind(batch, features_);
        count(first, last);
    }

    [[nodiscard]] std::int64_t samples() const noexcept { return samples_; }
    /// What was counted so far. Cost: sorts the rows.
    [[nodiscard]] AccessProfile profile() const;

  private:
    void check(std::int64_t first, std::int64_t last) const;
    void count(std::int64_t first, std::int64_t last);

    std::vector<TableConfig> tables_;
    std::vector<std::string> features_;    // of all tables, one table after the other
    std::vector<RowCounter> counters_;     // (table)
    std::vector<std::int64_t> positions_;  // (feature of a table): the next id among the batch's values
    steps::BatchView batch_;
    std::int64_t samples_ = 0;
};

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/planning/access_counter.ipp"
#endif
