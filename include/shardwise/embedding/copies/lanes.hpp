// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/embedding/copies/averager.hpp"
#include "shardwise/embedding/tables/store.hpp"
#include "shardwise/embedding/tables/touched_marks.hpp"
#include "shardwise/plan/memory.hpp"
#include "shardwise/sharding/policy.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// What the steps of a sync hand to each other. Its plan runs among the copies of one rank's shards, numbered from 0.

namespace shardwise::inline SHARDWISE_ABI::copies {

/// The shards of a rank, all placements one after the other, as a sync sees them.
struct CopiedShards {
    static constexpr const char* state_name = "CopiedShards";
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

/// Rows of one shard that some copy touched, ascending, each with the copy that makes its mean.
class RowsToMean {
  public:
    RowsToMean& on(std::pmr::memory_resource& memory) {
        rows_.on(memory);
        averagers_.on(memory);
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

    /// Calls use(row, averager, touched) for each, where touched(copy) says whether that copy changed it.
    template <class Use>
    void for_each(Use use) const {
        if (all_) {
            for (std::int64_t row = 0; row < size_; ++row)
                use(static_cast<LocalRow>(row), static_cast<int>(row % copies_), [](int) { return true; });
            return;
        }
        for (std::int64_t i = 0; i < size_; ++i) {
            const std::uint64_t* const bits = touched_.data() + i * words_;
            use(rows_[static_cast<std::size_t>(i)], averagers_[static_cast<std::size_t>(i)],
                [bits](int copy) { return (bits[copy / 64] >> copy % 64 & 1U) != 0; });
        }
    }
    /// What the buffers need for lists of so many rows together.
    static void tally(std::int64_t rows, int copies, MemoryTally& tally) {
        tally.need(4 * rows);
        tally.need(4 * rows);
        tally.need(8 * rows * ((copies + 63) / 64));
    }

  private:
    Buffer<LocalRow> rows_;
    Buffer<std::int32_t> averagers_;
    Buffer<std::uint64_t> touched_;  // (row, word of copies)
    std::int64_t size_ = 0;
    std::int64_t words_ = 1;
    int copies_ = 1;
    bool all_ = false;
};

/// The run reader's.
struct Lanes {
    std::vector<RowsToMean> rows;  ///< (shard)
};

/// The cost reader's: all copies at once.
struct Cost {
    using Number = std::int64_t;
    struct Shard {
        std::int64_t rows = 0;
        int dim = 0;
        std::int64_t floats = 0;                         ///< of a row and its state
        std::vector<std::vector<std::int64_t>> touched;  ///< (copy): rows, ascending; of no use where all rows move
    };
    std::vector<Shard> shards;
    int element_slots = 0;
    int row_slots = 0;
    // what follows
    std::vector<std::int64_t> met;                    ///< (shard): rows that some copy touched
    std::vector<std::vector<std::int64_t>> gathered;  ///< (copy, averager): floats
    std::vector<std::int64_t> spread;                 ///< (averager): floats of means

    /// Counts a row that these copies touched.
    template <class Touched>
    void meet(std::size_t shard, std::int64_t row, int copies, Touched touched) {
        const auto averager = static_cast<std::size_t>(averager_of(row, copies, touched));
        ++met[shard];
        for (std::size_t copy = 0; copy < gathered.size(); ++copy)
            if (touched(static_cast<int>(copy))) gathered[copy][averager] += shards[shard].floats;
        spread[averager] += shards[shard].floats;
    }
    void begin(int copies) {
        met.assign(shards.size(), 0);
        gathered.assign(static_cast<std::size_t>(copies),
                        std::vector<std::int64_t>(static_cast<std::size_t>(copies), 0));
        spread.assign(static_cast<std::size_t>(copies), 0);
    }
};

/// The types that the steps of a sync work on.
struct Domain {
    using Lanes = copies::Lanes;
    using Cost = copies::Cost;
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
