// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "shardwise/core/at.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/embedding/kernels/lookup.hpp"
#include "shardwise/embedding/lanes/batch.hpp"
#include "shardwise/embedding/lanes/blocks.hpp"
#include "shardwise/embedding/lanes/cost_lanes.hpp"
#include "shardwise/embedding/lanes/expectation.hpp"
#include "shardwise/embedding/lanes/pooling.hpp"
#include "shardwise/plan/memory.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// A batch cut by shard, whoever's samples it has.

namespace shardwise::inline SHARDWISE_ABI::steps {

/// What the first step of a plan leaves to later ones.
struct SplitTape {
    std::vector<std::int64_t> first;  // (feature + 1): first id
    Buffer<LocalRow> rows;            // (id) by block
    Buffer<float> weights;            // (id) by block
    Buffer<std::int32_t> shard_of;    // (id): where rows are split
    Buffer<LocalRow> local_of;        // (id): where rows are split
    Buffer<std::int32_t> lengths;     // (bag) by block: where they are others than the batch's
    Buffer<std::int32_t> samples;     // (bag) by block: where some have no id
    std::vector<IdBlock> blocks;      // (block): as they leave
    /// How far a block is filled.
    struct Cursor {
        std::int64_t row = 0;
        std::int64_t bag = 0;
        std::int64_t sample = -1;  // whose the bag is
    };
    std::vector<Cursor> cursor;  // (shard)
    std::vector<SplitTape> of;   // (number in the home): with Ids<AtOwner>, of each rank's samples

    /// The block of a feature's shard.
    [[nodiscard]] const IdBlock& block(const Placement& placement, int feature, int shard) const {
        return at(blocks, placement.block_index(feature, shard));
    }
};

namespace detail {

inline std::int64_t filled_bags(const BatchView& batch, int f) {
    const std::int32_t* const lengths = batch.lengths(f);
    if (lengths == nullptr) return batch.samples();
    return batch.samples() - std::count(lengths, lengths + batch.samples(), 0);
}
inline bool some_are_empty(const BatchView& batch, int f) {
    return filled_bags(batch, f) != batch.samples();
}
/// The bags whose samples are told of where rows are whole: where some are empty, the others.
inline std::int64_t told_bags(const BatchView& batch, int f) {
    return some_are_empty(batch, f) ? filled_bags(batch, f) : 0;
}
inline const ExpectedCount& told_bags(const ExpectedBatch& batch, int f) {
    return batch.told_bags(f);
}

/// The most bags whose lengths may differ from the batch's, over all blocks.
template <class Number, class Batch>
Number room_for_bags(const Placement& placement, const PlanPooling& pooling, const Batch& batch) {
    Number bags = 0;
    if (pooling.distinct) return bags;
    for (int f = 0; f < static_cast<int>(placement.features.size()); ++f) {
        const Number all = std::ssize(placement.table_of(f).shards) * batch.samples();
        if (placement.splits == Splits::rows)
            bags += pooling.every_bag ? all : std::min<Number>(all, batch.values(f));
        else if (!pooling.every_bag)
            bags += told_bags(batch, f);
    }
    return bags;
}

/// What a tape's buffers need. \param given  given(feature): its ids are there
template <class Number, class Batch, class Given>
void tally_split(const Placement& placement, const PlanPooling& pooling, const Batch& batch, bool weighted, Given given,
                 MemoryTally& tally) {
    Number all = 0;
    for (int f = 0; f < static_cast<int>(placement.features.size()); ++f)
        if (given(f)) all += batch.values(f);
    const std::int64_t ids = rounded_up(all);
    const bool by_rows = placement.splits == Splits::rows;
    tally.need(4 * ids);
    tally.need(weighted ? 4 * ids : 0);
    tally.need(by_rows ? 4 * ids : 0);
    tally.need(by_rows ? 4 * ids : 0);
    const std::int64_t bags = rounded_up(room_for_bags<Number>(placement, pooling, batch));
    tally.need(4 * bags);
    tally.need(pooling.every_bag ? 0 : 4 * bags);
}

/// Fills a tape from the batch of a rank.
class Splitter {
  public:
    Splitter(const Placement& placement, const PlanPooling& pooling, std::pmr::memory_resource& memory, int rank,
             BatchView& batch, SplitTape& tape)
        : placement_{placement}, pooling_{pooling}, memory_{memory}, rank_{rank}, batch_{batch}, tape_{tape} {}

    /// \returns what is wrong with the batch, or nothing
    [[nodiscard]] std::string split();

  private:
    [[nodiscard]] bool by_rows() const { return placement_.splits == Splits::rows; }
    /// Ids travel with 32-bit counts, bags with 31 bits.
    [[nodiscard]] std::string check_counts() const;
    [[nodiscard]] std::string check_sequences();
    /// Both return false where an id is no row of the table.
    template <class Id>
    [[nodiscard]] bool split_feature(int f, std::span<const Id> values);
    template <class Id>
    [[nodiscard]] static bool locate(const TablePlacement& table, std::span<const Id> ids, std::int32_t* shard_of,
                                     LocalRow* rows);
    /// Deals a feature's located rows to the blocks of their shards, where there are no bags.
    void deal_distinct(int f, IdBlock* blocks, int shards, std::int64_t to);
    /// Deals a feature's located rows to the blocks of their shards, bag by bag.
    void deal(int f, IdBlock* blocks, int shards, std::int64_t to);
    /// Null says that all have ids, so where none has any it is not null.
    [[nodiscard]] const std::int32_t* samples_from(std::int64_t bag) const;
    void put(std::int64_t to, LocalRow row, std::int64_t value);
    /// Calls use(number among the feature's ids, sample) for each of them.
    template <class Use>
    void for_ids(int f, Use use) const {
        const std::int32_t* const lengths = batch_.lengths(f);
        std::int64_t i = 0;
        for (std::int64_t sample = 0; sample < batch_.samples(); ++sample)
            for (const std::int64_t end = i + (lengths == nullptr ? 1 : lengths[sample]); i < end; ++i)
                use(i, sample);
    }
    /// Bags without an id stay away from all shards of a feature.
    void leave_empty_bags(int f, IdBlock* blocks);

    const Placement& placement_;
    const PlanPooling& pooling_;
    std::pmr::memory_resource& memory_;
    int rank_;
    BatchView& batch_;
    SplitTape& tape_;
    std::int64_t bags_ = 0;  // of the blocks so far
};

/// What each shard is told of all ranks' batches, for the cost reader; and for the expectation reader.
void count_blocks(EmbeddingCost& cost);
inline void count_blocks(EmbeddingExpectation& cost) {
    cost.count_blocks();
}

}  // namespace detail

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/steps/splitter.ipp"
#endif
