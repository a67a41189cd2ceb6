// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "shardwise/core/at.hpp"
#include "shardwise/embedding/kernels/row_groups.hpp"
#include "shardwise/embedding/steps/group_rows.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

struct GroupTape {
    std::vector<RowGroups> groups;             // (slot)
    std::vector<std::int64_t> done;            // (feature of a table): ids of the bags before
    std::vector<std::vector<std::size_t>> of;  // (slot): its blocks among the lane's
};

namespace detail {

struct GroupBody {
    using Tape = GroupTape;
    using View = shardwise::View<Lanes, GroupFamily::Tapes, GroupFamily::Sees>;

    static void run(StepEnv&, View& view) {
        Lanes& lanes = view.lanes();
        Tape& tape = view.tape<GroupTape>();
        const HeldShards& held = view.state<HeldShards>();
        const Work work{view.tape<LookupTape>().ids, lanes.vectors, view.state<PlanPooling>().pooled};
        tape.groups.resize(held.shards.size());
        tape.of.resize(held.shards.size());
        for (auto& blocks : tape.of)
            blocks.clear();
        for (std::size_t b = 0; b < work.ids.size(); ++b) {
            const Head& head = work.ids[b].head;
            const int table = at(view.state<Placement>().features, head.feature).table;
            at(tape.of, held.slot(table, head.shard)).push_back(b);
        }
        lanes.rows.clear();
        for (std::size_t slot = 0; slot < held.shards.size(); ++slot)
            lanes.rows.push_back(work.group(static_cast<int>(slot), held.shards[slot], tape.of[slot], tape.done,
                                            tape.groups[slot].on(*view.state<WorkMemory>().resource)));
    }

    static void memory(const CostEnv&, const EmbeddingCost& cost, int rank, MemoryTally& tally) {
        cost.for_shards(rank, [&](std::size_t key, int table, const ShardPlacement& shard) {
            std::int64_t ids = 0;
            std::int64_t count = 0;
            const auto shards = at(cost.placement->tables, table).shards.size();
            std::size_t block = key;
            for (const FeaturePlacement& feature : cost.placement->features) {
                if (feature.table != table) continue;
                cost.for_sources(rank, [&](int source) {
                    const std::int64_t here = at(cost.counts, source)[block].ids;
                    ids += here;
                    const std::int64_t bags = cost.rows_of(source, block);
                    count += at(cost.batches, source).weighted() ? here : std::min(here, bags);
                });
                block += shards;
            }
            RowGroups::tally(count, ids, shard.rows, tally);
        });
    }
    static void shape(const CostEnv&, EmbeddingCost& cost) {
        const Placement& placement = *cost.placement;
        cost.touched.assign(static_cast<std::size_t>(cost.ranks()), {});
        for (int rank = 0; rank < cost.ranks(); ++rank) {
            auto& touched = at(cost.touched, rank);
            touched.resize(static_cast<std::size_t>(placement.blocks));
            for (const BlockPlace& place : placement.owned_by(rank)) {
                const int table = at(placement.features, place.feature).table;
                auto& rows = touched[cost.key_of(table) + static_cast<std::size_t>(place.shard)];
                cost.for_sources(rank, [&](int source) {
                    const auto& ids = at(at(cost.ids, source), placement.block_index(place));
                    rows.insert(rows.end(), ids.begin(), ids.end());
                });
                std::sort(rows.begin(), rows.end());
                rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
            }
        }
    }

  private:
    /// The ids that were looked up, and the gradients of their bags.
    struct Work {
        const std::vector<IdBlock>& ids;
        const std::vector<VectorBlock>& gradients;
        bool pooled;

        /// The touched rows of one shard, given the numbers of its blocks.
        [[nodiscard]] RowSet group(int slot, const HeldShards::Shard& shard, const std::vector<std::size_t>& blocks,
                                   std::vector<std::int64_t>& done, RowGroups& groups) const {
            std::int64_t all_ids = 0;
            std::int64_t count = 0;
            for (const std::size_t b : blocks) {
                all_ids += ids[b].ids;
                count += one_an_id(ids[b]) ? ids[b].ids : ids[b].head.n;
            }
            Contribution* contribution = groups.resize(count).data();
            for_bags(blocks, done,
                     [&](const IdBlock& block, const VectorBlock& gradient, std::int64_t bag, std::int64_t i,
                         std::int64_t end) {
                         if (!one_an_id(block))
                             *contribution++ = {
                                 .gradient = gradient.row(bag), .weight = 1.0F, .source = block.head.source};
                         else
                             for (; i < end; ++i)
                                 *contribution++ = {.gradient = gradient.row(pooled ? bag : i),
                                                    .weight = block.weights == nullptr ? 1.0F : block.weights[i],
                                                    .source = block.head.source};
                     });
            return groups.group(slot, shard.dim, shard.rows, all_ids, [&](auto use) {
                std::uint64_t number = 0;
                for_bags(blocks, done,
                         [&](const IdBlock& block, const VectorBlock&, std::int64_t, std::int64_t i, std::int64_t end) {
                             const bool an_id = one_an_id(block);
                             for (; i < end; ++i) {
                                 use(block.rows[i], number);
                                 number += an_id ? 1U : 0U;
                             }
                             number += an_id ? 0U : 1U;
                         });
            });
        }

      private:
        /// Whether each id of a block has a contribution of its own; else all ids of a bag share one.
        [[nodiscard]] bool one_an_id(const IdBlock& block) const {
            return !pooled || block.weights != nullptr || block.ids <= block.head.n;
        }
        /// Calls use(block, gradient, bag, first id, behind its last) for each bag of a shard's blocks: by source,
        /// sample, feature.
        template <class Use>
        void for_bags(const std::vector<std::size_t>& blocks, std::vector<std::int64_t>& done, Use use) const {
            for (std::size_t first = 0; first < blocks.size();) {
                std::size_t end = first + 1;  // blocks of one source stand together, one a feature
                while (end < blocks.size() && ids[blocks[end]].head.source == ids[blocks[first]].head.source)
                    ++end;
                const std::int64_t bags = ids[blocks[first]].head.n;
                if (end - first == 1) {
                    const IdBlock block = ids[blocks[first]];
                    std::int64_t i = 0;
                    for (std::int64_t bag = 0; bag < bags; ++bag) {
                        const std::int64_t begin = i;
                        i += block.length(bag);
                        use(block, gradients[blocks[first]], bag, begin, i);
                    }
                } else {
                    done.assign(end - first, 0);
                    for (std::int64_t bag = 0; bag < bags; ++bag)
                        for (std::size_t k = first; k < end; ++k) {
                            std::int64_t& i = done[k - first];
                            const std::int64_t begin = i;
                            i += ids[blocks[k]].length(bag);
                            use(ids[blocks[k]], gradients[blocks[k]], bag, begin, i);
                        }
                }
                first = end;
            }
        }
    };
};

}  // namespace detail

SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, GroupFamily) {
    return code_from<EmbeddingDomain, detail::GroupBody>();
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
