// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "shardwise/core/at.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/embedding/copies/averager.hpp"
#include "shardwise/embedding/tables/store.hpp"
#include "shardwise/embedding/tables/touched_marks.hpp"
#include "shardwise/plan/expected_count.hpp"
#include "shardwise/plan/memory.hpp"
#include "shardwise/sharding/policy.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// What the steps of a sync hand to each other. Its plan runs among the copies of one rank's shards, numbered from 0.

namespace shardwise::inline SHARDWISE_ABI::copies {

/// The shards of a rank, all placements one after the other, as a sync sees them.
struct CopiedShards {
    static constexpr const char* state_name = "CopiedShards";
    /// One of them.
    struct Shard {
        ShardStore* store;
        TouchedMarks* marks;
        int slot;  ///< among the marks
    };
    std::vector<Shard> shards;
    int element_slots = 0;
    int row_slots = 0;

    /// Floats of a row and its state.
    [[nodiscard]] std::int64_t floats(const Shard& shard) const {
        return std::int64_t{shard.store->dim} * (1 + element_slots) + row_slots;
    }
};

/// How many of `rows` numbers, from 0 on, each of the copies has when they are dealt in turn.
[[nodiscard]] constexpr std::int64_t dealt(std::int64_t rows, int copies, int copy) noexcept {
    return rows / copies + (copy < rows % copies ? 1 : 0);
}

/// Rows of one shard that some copy touched, by the copy that makes their mean, ascending.
class RowsToMean {
  public:
    RowsToMean& on(std::pmr::memory_resource& memory) {
        rows_.on(memory);
        averagers_.on(memory);
        order_.on(memory);
        touched_.on(memory);
        return *this;
    }
    /// All rows, as if every copy had touched each of them.
    void take_all(std::int64_t rows, int copies) {
        all_ = true;
        size_ = rows;
        copies_ = copies;
    }
    /// What each copy touched. \param lists  (copy): ascending; empty afterwards
    void merge(std::vector<std::span<const LocalRow>>& lists);

    /// How many of them a copy makes the means of.
    [[nodiscard]] std::int64_t count_of(int averager) const {
        return all_ ? dealt(size_, copies_, averager) : at(first_, averager + 1) - at(first_, averager);
    }
    /// Calls use(row, touched) for each of these, where touched(copy) says whether that copy changed it.
    template <class Use>
    void for_each_of(int averager, Use use) const {
        if (all_) {
            for (std::int64_t row = averager; row < size_; row += copies_)
                use(static_cast<LocalRow>(row), [](int) { return true; });
            return;
        }
        for (std::int64_t i = at(first_, averager); i < at(first_, averager + 1); ++i) {
            const std::size_t number = order_[static_cast<std::size_t>(i)];
            const std::uint64_t* const bits = touched_.data() + number * static_cast<std::size_t>(words_);
            use(rows_[number], [bits](int copy) { return (bits[copy / 64] >> copy % 64 & 1U) != 0; });
        }
    }
    /// What the buffers need for lists of so many rows together.
    static void tally(std::int64_t rows, int copies, MemoryTally& tally) {
        tally.need(4 * rows);
        tally.need(4 * rows);
        tally.need(4 * rows);
        tally.need(8 * rows * ((copies + 63) / 64));
    }

  private:
    void order(std::size_t most);

    Buffer<LocalRow> rows_;
    Buffer<std::int32_t> averagers_;
    Buffer<std::uint32_t> order_;      // numbers of rows, by averager
    std::vector<std::int64_t> first_;  // (averager, and one more): of its rows in this order
    Buffer<std::uint64_t> touched_;    // (row, word of copies)
    std::int64_t size_ = 0;
    std::int64_t words_ = 1;
    int copies_ = 1;
    bool all_ = false;
};

/// The run reader's.
struct Lanes {
    std::vector<RowsToMean> rows;  ///< (shard)
};

/// What the cost reader and the expectation reader have in common.
struct ShardToSync {
    std::int64_t rows = 0;
    int dim = 0;
    std::int64_t floats = 0;  ///< of a row and its state
};
/// The cost reader's: all copies at once.
struct Cost {
    using Number = std::int64_t;
    /// A shard, and which of its rows were touched.
    struct Shard : ShardToSync {
        std::vector<std::vector<std::int64_t>> touched =
            {};  ///< (copy): rows, ascending; of no use where all rows move

        [[nodiscard]] std::int64_t touched_by(int copy) const { return std::ssize(at(touched, copy)); }
    };
    std::vector<Shard> shards;
    int element_slots = 0;
    int row_slots = 0;
    // what follows
    std::vector<std::vector<std::int64_t>> gathered;  ///< (copy, averager): floats
    std::vector<std::int64_t> spread;                 ///< (averager): floats of means

    /// Counts what travels of the rows that some copy touched.
    void meet_touched(int copies) {
        begin(copies);
        for (const Shard& shard : shards) {
            std::vector<std::int64_t> rows;
            for (const auto& of_copy : shard.touched)
                rows.insert(rows.end(), of_copy.begin(), of_copy.end());
            std::sort(rows.begin(), rows.end());
            rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
            for (const std::int64_t row : rows) {
                const auto touched = [&](int copy) {
                    return std::binary_search(at(shard.touched, copy).begin(), at(shard.touched, copy).end(), row);
                };
                const int averager = averager_of(row, copies, touched);
                for (int copy = 0; copy < copies; ++copy)
                    if (touched(copy)) at(at(gathered, copy), averager) += shard.floats;
                at(spread, averager) += shard.floats;
            }
        }
    }
    /// The same of all rows.
    void meet_all(int copies) {
        begin(copies);
        for (const Shard& shard : shards)
            for (int averager = 0; averager < copies; ++averager) {
                const std::int64_t floats = dealt(shard.rows, copies, averager) * shard.floats;
                for (int copy = 0; copy < copies; ++copy)
                    at(at(gathered, copy), averager) += floats;
                at(spread, averager) += floats;
            }
    }
    [[nodiscard]] std::int64_t gathered_floats(int from, int to) const { return at(at(gathered, from), to); }
    [[nodiscard]] std::int64_t spread_floats(int from) const { return at(spread, from); }

  private:
    void begin(int copies) {
        gathered.assign(static_cast<std::size_t>(copies),
                        std::vector<std::int64_t>(static_cast<std::size_t>(copies), 0));
        spread.assign(static_cast<std::size_t>(copies), 0);
    }
};

/// The expectation reader's: copies are alike, and rows that were touched are taken to be dealt among them evenly.
struct Expectation {
    using Number = ExpectedCount;
    /// A shard, and which of its rows were touched.
    struct Shard : ShardToSync {
        ExpectedCount touched = {};  ///< rows that a copy touched, any of them
        double by_some = 0.0;        ///< that at least one copy touched
        double by_all = 0.0;         ///< that all did

        [[nodiscard]] const ExpectedCount& touched_by(int) const { return touched; }
    };
    std::vector<Shard> shards;
    int element_slots = 0;
    int row_slots = 0;
    // what follows
    std::vector<ExpectedCount> gathered;  ///< (averager): floats from any other copy
    std::vector<ExpectedCount> spread;    ///< (averager): floats of means

    void meet_touched(int copies) {
        double of_pair = 0.0;
        double of_averager = 0.0;
        for (const Shard& shard : shards) {
            // an averager has touched the row only where all have: all others send then
            const double sent = copies * shard.touched.mean - shard.by_all;
            of_pair += sent / copies / (copies - 1) * static_cast<double>(shard.floats);
            of_averager += shard.by_some / copies * static_cast<double>(shard.floats);
        }
        gathered.assign(static_cast<std::size_t>(copies), {of_pair, Remainders::even()});
        spread.assign(static_cast<std::size_t>(copies), {of_averager, Remainders::even()});
    }
    void meet_all(int copies) {
        gathered.assign(static_cast<std::size_t>(copies), 0);
        for (const Shard& shard : shards)
            for (int averager = 0; averager < copies; ++averager)
                at(gathered, averager) += dealt(shard.rows, copies, averager) * shard.floats;
        spread = gathered;
    }
    [[nodiscard]] const ExpectedCount& gathered_floats(int, int to) const { return at(gathered, to); }
    [[nodiscard]] const ExpectedCount& spread_floats(int from) const { return at(spread, from); }
};

/// The types that the steps of a sync work on.
struct Domain {
    using Lanes = copies::Lanes;
    using Cost = copies::Cost;
    using Expectation = copies::Expectation;
};

// The forms between its steps.
/// Copies that may differ.
struct Apart {};
/// It is known which rows do.
struct Known {};
/// One copy of each row has the mean.
struct Averaged {};
/// All have.
struct Equal {};

}  // namespace shardwise::inline SHARDWISE_ABI::copies

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/copies/lanes.ipp"
#endif
