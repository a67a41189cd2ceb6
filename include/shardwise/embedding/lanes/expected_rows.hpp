// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/lanes/workload.hpp"
#include "shardwise/plan/expected_count.hpp"
#include "shardwise/sharding/row_map.hpp"
#include "shardwise/sharding/shard_map.hpp"

/// \file
/// What a workload means for each shard of a table: its share of the look-ups, and its touched rows.

namespace shardwise::inline SHARDWISE_ABI::steps {

/// Some rows of a shard, and how many samples may have touched them.
struct TouchedBy {
    std::vector<char> residues;  ///< (local row modulo the copies of the table): those rows are among them
    std::int64_t samples = 0;

    /// Adds those rows of another shard whose residues `keep` keeps: the same ones, by more samples, or others, by as
    /// many.
    template <class Keep>
    void add(const TouchedBy& other, Keep keep) {
        bool same = false;
        residues.resize(other.residues.size(), 0);
        for (std::size_t r = 0; r < residues.size(); ++r) {
            if (other.residues[r] == 0 || !keep(static_cast<LocalRow>(r))) continue;
            same |= residues[r] != 0;
            residues[r] = 1;
        }
        samples = same ? samples + other.samples : other.samples;
    }
    void settle() {}
};

/// What may touch a row: at least one of `samples`, in each of so many sets of them.
struct Touches {
    std::int64_t samples = 0;
    int sets = 1;
    friend constexpr bool operator==(const Touches&, const Touches&) = default;
    friend constexpr bool operator<(const Touches& a, const Touches& b) noexcept {
        return a.samples != b.samples ? a.samples < b.samples : a.sets < b.sets;
    }
};

/// The rows of one table, or of one tier of it, by shard, and inside a shard by their local number modulo the copies of
/// the table: as ranks that hold copies deal rows among them.
class ExpectedRows {
  public:
    /// Where the rows are.
    struct Where {
        const ShardMap* map = nullptr;
        int shards = 1;                 ///< that have rows of their own: 1 where columns are split
        int copies = 1;                 ///< of every row
        const RowMap* tiers = nullptr;  ///< null: all rows are meant
        int tier = 0;
    };

    ExpectedRows() = default;
    /// Cost: one pass over the rows of the workload, and an exponential a run and number of samples.
    /// \param asked  all that touched() will be asked for
    ExpectedRows(const TableUse& use, const Where& where, std::vector<Touches> asked);

    /// The probability that a look-up in the table is one of a shard, or of any of them.
    [[nodiscard]] double share(int shard) const;
    [[nodiscard]] double share() const;
    /// The rows of a shard that `by` have touched: the sum of 1 - (1 - q)^samples.
    [[nodiscard]] ExpectedCount touched(int shard, const TouchedBy& by) const;
    /// All of a shard: the sum of (1 - (1 - q)^samples)^sets.
    [[nodiscard]] ExpectedCount touched(int shard, const Touches& by) const;
    /// Of all shards.
    [[nodiscard]] double touched(std::int64_t samples) const;

  private:
    struct Cell {
        double lookups = 0.0;
        std::int64_t used = 0;  // rows that are looked up at all
    };
    struct Touched {
        ExpectedCount rows;
        bool even = false;  // the remainders are
    };
    void read(const TableUse& use, const Where& where);
    [[nodiscard]] double share(std::size_t first_cell, std::size_t count) const;
    [[nodiscard]] std::size_t number_of(const Touches& by) const;

    std::size_t copies_ = 1;
    std::vector<Touches> asked_;
    double lookups_ = 0.0;  // in the table
    std::int64_t used_ = 0;
    std::vector<Cell> cells_;       // (shard, residue)
    std::vector<Touched> touched_;  // (cell, number of what is asked)
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/lanes/expected_rows.ipp"
#endif
