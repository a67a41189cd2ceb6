// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/blocks.hpp"
#include "shardwise/embedding/cost.hpp"
#include "shardwise/embedding/forms.hpp"
#include "shardwise/embedding/lanes.hpp"
#include "shardwise/embedding/row_groups.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/program.hpp"

/// \file
/// Ids and rows to vectors, and back: gradients by touched row.

namespace shardwise::inline SHARDWISE_ABI {

/// The adjoint of Lookup: groups the gradients of all bags by the row they touched. Nothing is summed yet. Local; sorts
/// the ids of each shard once.
template <class Pooling>
struct GroupRows {
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<GroupRows>;
    static constexpr bool reads_state = false;
    static std::string name() { return "GroupRows"; }

    struct Tape {
        std::vector<RowGroups> groups;             // (shard of the store)
        std::vector<std::int64_t> done;            // (feature of a table): ids of the bags before
        std::vector<std::vector<std::size_t>> of;  // (shard of the store): its blocks among the lane's
    };

    template <class V>
    static void run(StepEnv&, V& view) {
        Lanes& lanes = view.lanes();
        Tape& tape = view.template tape<GroupRows>();
        const auto& shards = lanes.store->shards();
        tape.groups.resize(shards.size());
        tape.of.resize(shards.size());
        for (auto& blocks : tape.of)
            blocks.clear();
        for (std::size_t b = 0; b < lanes.ids.size(); ++b) {
            const Head& head = lanes.ids[b].head;
            const int table = lanes.placement->features[static_cast<std::size_t>(head.feature)].table;
            tape.of[static_cast<std::size_t>(lanes.store->slot(table, head.shard))].push_back(b);
        }
        lanes.rows.clear();
        for (std::size_t slot = 0; slot < shards.size(); ++slot) {
            const std::vector<std::size_t>& blocks = tape.of[slot];
            std::int64_t ids = 0;
            std::int64_t count = 0;
            for (const std::size_t b : blocks) {
                ids += lanes.ids[b].ids;
                count += one_an_id(lanes.ids[b]) ? lanes.ids[b].ids : lanes.ids[b].head.n;
            }
            RowGroups& groups = tape.groups[slot].on(*lanes.memory);
            Contribution* contribution = groups.resize(count).data();
            for_bags(lanes, blocks, tape.done,
                     [&](const IdBlock& block, const VectorBlock& gradients, std::int64_t bag, std::int64_t i,
                         std::int64_t end) {
                         if (!one_an_id(block))
                             *contribution++ = {
                                 .gradient = gradients.row(bag), .weight = 1.0F, .source = block.head.source};
                         else
                             for (; i < end; ++i)
                                 *contribution++ = {.gradient = gradients.row(Pooling::pooled ? bag : i),
                                                    .weight = block.weights == nullptr ? 1.0F : block.weights[i],
                                                    .source = block.head.source};
                     });
            lanes.rows.push_back(
                groups.group(static_cast<int>(slot), shards[slot].dim, shards[slot].rows, ids, [&](auto use) {
                    std::uint64_t number = 0;
                    for_bags(
                        lanes, blocks, tape.done,
                        [&](const IdBlock& block, const VectorBlock&, std::int64_t, std::int64_t i, std::int64_t end) {
                            const bool an_id = one_an_id(block);
                            for (; i < end; ++i) {
                                use(block.rows[i], number);
                                number += an_id ? 1U : 0U;
                            }
                            number += an_id ? 0U : 1U;
                        });
                }));
        }
    }

    static void memory(const EmbeddingCost& cost, int rank, MemoryTally& tally) {
        cost.for_shards(rank, [&](std::size_t key, int table, const ShardPlacement& shard) {
            std::int64_t ids = 0;
            std::int64_t count = 0;
            const auto shards = cost.placement->tables[static_cast<std::size_t>(table)].shards.size();
            std::size_t block = key;
            for (const FeaturePlacement& feature : cost.placement->features) {
                if (feature.table != table) continue;
                for (int source = 0; source < cost.ranks(); ++source) {
                    if (cost.placement->replicated && source != rank) continue;
                    const std::int64_t here = cost.counts[static_cast<std::size_t>(source)][block].ids;
                    ids += here;
                    const std::int64_t bags = cost.rows_of<Pooling>(source, block);
                    count += (*cost.batches)[static_cast<std::size_t>(source)].weighted() ? here : std::min(here, bags);
                }
                block += shards;
            }
            RowGroups::tally(count, ids, shard.rows, tally);
        });
    }
    static void shape(EmbeddingCost& cost) {
        const Placement& placement = *cost.placement;
        cost.touched.assign(static_cast<std::size_t>(cost.ranks()), {});
        for (int rank = 0; rank < cost.ranks(); ++rank) {
            auto& touched = cost.touched[static_cast<std::size_t>(rank)];
            touched.resize(
                static_cast<std::size_t>(placement.blocks));  // by the first feature's block of a table's shard
            for (const BlockPlace& place : placement.owned[static_cast<std::size_t>(rank)]) {
                auto& rows = touched[static_cast<std::size_t>(first_block(placement, place))];
                for (int source = 0; source < cost.ranks(); ++source) {
                    if (placement.replicated && source != rank) continue;
                    const auto& ids =
                        cost.ids[static_cast<std::size_t>(source)]
                                [static_cast<std::size_t>(placement.block_index(place.feature, place.shard))];
                    rows.insert(rows.end(), ids.begin(), ids.end());
                }
                std::sort(rows.begin(), rows.end());
                rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
            }
        }
    }

  private:
    static int first_block(const Placement& placement, const BlockPlace& place) {
        const int table = placement.features[static_cast<std::size_t>(place.feature)].table;
        for (const FeaturePlacement& feature : placement.features)
            if (feature.table == table) return feature.first_block + place.shard;
        return -1;
    }
    static int source(const Lanes& lanes, std::size_t b) { return lanes.ids[b].head.source; }
    /// Whether each id of a block has a contribution of its own; else all ids of a bag share one.
    static bool one_an_id(const IdBlock& block) {
        return !Pooling::pooled || block.weights != nullptr || block.ids <= block.head.n;
    }

    /// Calls use(block, bag, first id, behind its last) for each bag of a shard's blocks: by source, sample, feature.
    template <class Use>
    static void for_bags(const Lanes& lanes, const std::vector<std::size_t>& blocks, std::vector<std::int64_t>& done,
                         Use use) {
        for (std::size_t first = 0; first < blocks.size();) {
            std::size_t end = first + 1;  // blocks of one source stand together, one a feature
            while (end < blocks.size() && source(lanes, blocks[end]) == source(lanes, blocks[first]))
                ++end;
            const std::int64_t bags = lanes.ids[blocks[first]].head.n;
            if (end - first == 1) {
                const IdBlock block = lanes.ids[blocks[first]];
                std::int64_t i = 0;
                for (std::int64_t bag = 0; bag < bags; ++bag) {
                    const std::int64_t begin = i;
                    i += block.length(bag);
                    use(block, lanes.vectors[blocks[first]], bag, begin, i);
                }
            } else {
                done.assign(end - first, 0);
                for (std::int64_t bag = 0; bag < bags; ++bag)
                    for (std::size_t k = first; k < end; ++k) {
                        std::int64_t& i = done[k - first];
                        const std::int64_t begin = i;
                        i += lanes.ids[blocks[k]].length(bag);
                        use(lanes.ids[blocks[k]], lanes.vectors[blocks[k]], bag, begin, i);
                    }
            }
            first = end;
        }
    }
};

/// Says for every block of ids what to look up in the shard that holds its rows. Whoever reads the vectors does it,
/// straight into a message or the result: each row that an id names is read once, in order. Local.
template <class Pooling>
struct Lookup {
    template <class Form>
    using Out = typename LookedUp<Form, Pooling::pooled>::type;
    using Adjoint = Plan<GroupRows<Pooling>>;
    using Uses = boost::mp11::mp_list<>;
    static constexpr bool reads_state = true;
    static std::string name() { return std::string{"Lookup<"} + Pooling::name + ">"; }

    template <class V>
    static void run(StepEnv&, V& view) {
        Lanes& lanes = view.lanes();
        lanes.vectors.clear();
        for (const IdBlock& block : lanes.ids) {
            const int table = lanes.placement->features[static_cast<std::size_t>(block.head.feature)].table;
            const ShardStore& shard =
                lanes.store->shards()[static_cast<std::size_t>(lanes.store->slot(table, block.head.shard))];
            VectorBlock& vectors = lanes.vectors.emplace_back();
            vectors.head = block.head;
            if (!Pooling::pooled) vectors.head.n = block.ids;
            vectors.are = Pooling::pooled ? VectorsAre::bag_sums : VectorsAre::table_rows;
            vectors.lookup = {.table = shard.weights.data(),
                              .dim = block.head.dim,
                              .bags = block.head.n,
                              .ids = block.ids,
                              .lengths = block.lengths,
                              .rows = block.rows,
                              .weights = block.weights,
                              .out = nullptr};
        }
    }
    static void shape(EmbeddingCost& cost) {
        cost.way.clear();
        cost.pooled = Pooling::pooled;
        cost.vectors.assign(static_cast<std::size_t>(cost.ranks()), {});
        for (int owner = 0; owner < cost.ranks(); ++owner)
            for (int source = 0; source < cost.ranks(); ++source) {
                if (cost.placement->replicated && source != owner) continue;
                for (const BlockPlace& place : cost.placement->owned[static_cast<std::size_t>(owner)]) {
                    const int index = cost.placement->block_index(place.feature, place.shard);
                    const Head head{.source = source,
                                    .owner = owner,
                                    .feature = place.feature,
                                    .shard = place.shard,
                                    .dim = cost.placement->shard(place).columns.count,
                                    .n = cost.rows_of<Pooling>(source, static_cast<std::size_t>(index))};
                    cost.vectors[static_cast<std::size_t>(owner)].push_back({.head = head, .looked_up = false});
                }
            }
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI
