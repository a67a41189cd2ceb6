// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "shardwise/core/at.hpp"
#include "shardwise/embedding/kernels/pack_gradients.hpp"
#include "shardwise/embedding/kernels/row_groups.hpp"
#include "shardwise/embedding/steps/group_rows.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

namespace detail {

/// A block's ids and the gradients of its bags, apart from the lanes: what a loop over bags writes cannot
/// change them.
struct BagsOfBlock {
    IdBlock block;
    bool an_id;  ///< each id has a contribution of its own; else all ids of a bag share one
    const float* gradients;
    std::int64_t stride;
    const std::int32_t* gather;
    std::int64_t bag = 0;   ///< the next
    std::int64_t done = 0;  ///< ids of the bags before

    [[nodiscard]] const float* gradient(std::int64_t row) const noexcept {
        return gradients + (gather == nullptr ? row : gather[row]) * stride;
    }
    /// Whose the next bag is; behind the last, nobody's.
    [[nodiscard]] std::int64_t sample() const noexcept {
        if (bag == block.head.n) return std::numeric_limits<std::int64_t>::max();
        return block.samples == nullptr ? bag : block.samples[bag];
    }
};

}  // namespace detail

struct GroupTape {
    RowGroups groups;
    std::vector<std::vector<std::size_t>> of;  // (slot): its blocks among the lane's
    std::vector<detail::BagsOfBlock> bags;     // (feature of a table), of one source
    Buffer<float> packed;                      // the room of one set after another
};

namespace detail {

struct GroupBody {
    using Tape = GroupTape;
    using View = shardwise::View<Lanes, GroupFamily::Tapes, GroupFamily::Sees>;

    static void run(StepEnv&, View& view) {
        Lanes& lanes = view.lanes();
        Tape& tape = view.tape<GroupTape>();
        const HeldShards& held = view.state<HeldShards>();
        const PlanPooling& pooling = view.state<PlanPooling>();
        const Work work{view.tape<LookupTape>().ids, lanes.vectors, pooling.pooled, pooling.words == 2};
        tape.of.resize(held.shards.size());
        for (auto& blocks : tape.of)
            blocks.clear();
        for (std::size_t b = 0; b < work.ids.size(); ++b) {
            const Head& head = work.ids[b].head;
            const int table = at(view.state<Placement>().features, head.feature).table;
            at(tape.of, held.slot(table, head.shard)).push_back(b);
        }
        std::pmr::memory_resource& memory = *view.state<WorkMemory>().resource;
        work.begin(tape.groups.on(memory), held.shards.size());
        lanes.rows.clear();
        std::int64_t room = 0;
        for (std::size_t slot = 0; slot < held.shards.size(); ++slot) {
            RowSet& set = lanes.rows.emplace_back(
                work.group(static_cast<int>(slot), held.shards[slot], tape.of[slot], tape.bags, tape.groups));
            set.wide = work.wide;
            room = std::max(room, room_to_pack(set));
        }
        tape.packed.on(memory).resize(static_cast<std::size_t>(room));
        for (RowSet& set : lanes.rows)
            if (room_to_pack(set) > 0) set.room = tape.packed.data();
    }

    template <class Cost>
    static void memory(const CostEnv&, const Cost& cost, int rank, MemoryTally& tally) {
        using Number = typename Cost::Number;
        RowGroups::Needs groups;
        const bool wide = cost.pooling->words == 2;
        std::int64_t room = 0;
        cost.for_shards(rank, [&](std::size_t key, int table, const ShardPlacement& shard) {
            Number ids = 0;
            Number count = 0;
            const auto shards = at(cost.placement->tables, table).shards.size();
            std::size_t block = key;
            for (const FeaturePlacement& feature : cost.placement->features) {
                if (feature.table != table) continue;
                cost.for_sources(rank, [&](int source) {
                    const Number here = cost.count(source, block).ids;
                    ids += here;
                    const Number bags = cost.rows_of(source, block);
                    count += cost.batch(source).weighted() ? here : std::min(here, bags);
                });
                block += shards;
            }
            groups.add(rounded_up(count), rounded_up(ids), shard.rows);
            if (!wide) room = std::max(room, room_to_pack(rounded_up(count), rounded_up(ids), shard.columns.count));
        });
        groups.tally(tally);
        tally.need(room * static_cast<std::int64_t>(sizeof(float)));
    }
    static void shape(const CostEnv&, EmbeddingCost& cost) {
        const Placement& placement = *cost.placement;
        cost.touched.assign(static_cast<std::size_t>(cost.ranks()), {});
        for (int rank = 0; rank < cost.ranks(); ++rank) {
            auto& touched = at(cost.touched, rank);
            touched.resize(static_cast<std::size_t>(placement.blocks));
            for (const BlockPlace& place : placement.owned_by(rank)) {
                const int table = at(placement.features, place.feature).table;
                auto& set = touched[cost.key_of(table) + static_cast<std::size_t>(place.shard)];
                cost.for_sources(rank, [&](int source) {
                    const auto& ids = at(at(cost.ids, source), placement.block_index(place));
                    set.rows.insert(set.rows.end(), ids.begin(), ids.end());
                });
                set.settle();
            }
        }
    }
    static void shape(const CostEnv&, EmbeddingExpectation& cost) {
        const Placement& placement = *cost.placement;
        const TouchedBy all{.residues = std::vector<char>(static_cast<std::size_t>(placement.copies()), 1),
                            .samples = cost.workload->samples * placement.home.size};
        cost.touched.assign(static_cast<std::size_t>(cost.ranks()),
                            std::vector<TouchedBy>(static_cast<std::size_t>(placement.blocks)));
        for (int rank = 0; rank < cost.ranks(); ++rank)
            cost.for_shards(rank,
                            [&](std::size_t key, int, const ShardPlacement&) { at(cost.touched, rank)[key] = all; });
    }

  private:
    /// The ids that were looked up, and the gradients of their bags.
    struct Work {
        const std::vector<IdBlock>& ids;
        const std::vector<VectorBlock>& gradients;
        bool pooled;
        bool wide;  ///< gradients are doubles

        /// Makes room for all shards.
        void begin(RowGroups& groups, std::size_t shards) const {
            std::int64_t all_ids = 0;
            std::int64_t count = 0;
            for (const IdBlock& block : ids) {
                all_ids += block.ids;
                count += contributions(block);
            }
            groups.begin(count, all_ids, shards);
        }
        /// The touched rows of one shard, given the numbers of its blocks.
        [[nodiscard]] RowSet group(int slot, const HeldShards::Shard& shard, const std::vector<std::size_t>& blocks,
                                   std::vector<BagsOfBlock>& bags, RowGroups& groups) const {
            std::int64_t all_ids = 0;
            std::int64_t count = 0;
            for (const std::size_t b : blocks) {
                all_ids += ids[b].ids;
                count += contributions(ids[b]);
            }
            Contribution* const listed = groups.contribute(count).data();
            const bool evenly = blocks.size() == 1 && lie_evenly(bags_of(blocks.front()));
            if (!evenly) list(blocks, bags, listed);
            RowSet set = groups.group(slot, shard.dim, shard.rows, all_ids, [&](auto use) {
                std::uint64_t number = 0;
                for_sources(blocks, bags, [&] {
                    if (bags.size() == 1 && bags.front().an_id) {  // numbers are those of the ids
                        const BagsOfBlock of = bags.front();
                        for (std::int64_t i = 0; i < of.block.ids; ++i)
                            use(of.block.rows[i], number++);
                    } else {
                        for_bags(bags, [&](const BagsOfBlock& of, std::int64_t, std::int64_t i, std::int64_t end) {
                            for (; i < end; ++i) {
                                use(of.block.rows[i], number);
                                number += of.an_id ? 1U : 0U;
                            }
                            number += of.an_id ? 0U : 1U;
                        });
                    }
                });
            });
            if (evenly) {
                const VectorBlock& from = gradients[blocks.front()];
                set.contributions = {
                    .list = nullptr, .count = count, .even = from.data, .stride = from.stride, .squares = from.squares};
            }
            return set;
        }

      private:
        /// Lists what contributes to the rows of a shard.
        void list(const std::vector<std::size_t>& blocks, std::vector<BagsOfBlock>& bags, Contribution* to) const {
            for_sources(blocks, bags, [&] {
                if (bags.size() == 1 && one_a_gradient(bags.front())) {
                    to = add_gradients(bags.front(), to);
                    return;
                }
                for_bags(bags, [&](const BagsOfBlock& of, std::int64_t bag, std::int64_t i, std::int64_t end) {
                    if (!of.an_id)
                        *to++ = {.gradient = of.gradient(bag), .weight = 1.0F, .source = of.block.head.source};
                    else
                        for (; i < end; ++i)
                            *to++ = {.gradient = of.gradient(pooled ? bag : i),
                                     .weight = of.block.weights == nullptr ? 1.0F : of.block.weights[i],
                                     .source = of.block.head.source};
                });
            });
        }
        [[nodiscard]] BagsOfBlock bags_of(std::size_t block) const {
            return {.block = ids[block],
                    .an_id = one_an_id(ids[block]),
                    .gradients = gradients[block].data,
                    .stride = gradients[block].stride,
                    .gather = gradients[block].gather};
        }
        [[nodiscard]] bool one_an_id(const IdBlock& block) const {
            return !pooled || block.weights != nullptr || block.ids <= block.head.n;
        }
        /// How many a block has.
        [[nodiscard]] std::int64_t contributions(const IdBlock& block) const {
            return one_an_id(block) ? block.ids : block.head.n;
        }
        /// Whether the contributions of a block are its gradients, one by one.
        [[nodiscard]] bool one_a_gradient(const BagsOfBlock& of) const {
            const bool one_id_a_bag = of.block.lengths == nullptr && of.block.ids == of.block.head.n;
            return !of.an_id || !pooled || one_id_a_bag;
        }
        /// Whether they are so, without a weight, one a stride.
        [[nodiscard]] bool lie_evenly(const BagsOfBlock& of) const {
            return !wide && of.gradients != nullptr && of.gather == nullptr && of.block.weights == nullptr &&
                   one_a_gradient(of);
        }
        /// \returns behind the last
        [[nodiscard]] static Contribution* add_gradients(const BagsOfBlock& from, Contribution* to) {
            const BagsOfBlock of = from;  // a copy stays in registers
            const float* const weights = of.block.weights;
            const std::int64_t count = of.an_id ? of.block.ids : of.block.head.n;
            for (std::int64_t k = 0; k < count; ++k)
                *to++ = {.gradient = of.gradient(k),
                         .weight = weights == nullptr ? 1.0F : weights[k],
                         .source = of.block.head.source};
            return to;
        }
        /// Calls use() for each source of a shard's blocks, with its blocks in `bags`, one a feature.
        template <class Use>
        void for_sources(const std::vector<std::size_t>& blocks, std::vector<BagsOfBlock>& bags, Use use) const {
            for (std::size_t first = 0; first < blocks.size();) {
                const Head& head = ids[blocks[first]].head;
                bags.clear();
                for (; first < blocks.size() && ids[blocks[first]].head.source == head.source; ++first)
                    bags.push_back(bags_of(blocks[first]));
                use();
            }
        }
        /// Calls use(block, bag, first id, behind its last) for each bag of a source: by sample, then feature.
        template <class Use>
        static void for_bags(std::vector<BagsOfBlock>& bags, Use use) {
            const auto one_bag = [&use](BagsOfBlock& of) {
                const std::int64_t begin = of.done;
                of.done += of.block.length(of.bag);
                use(of, of.bag++, begin, of.done);
            };
            if (bags.size() == 1) {
                BagsOfBlock of = bags.front();  // a copy stays in registers
                while (of.bag < of.block.head.n)
                    one_bag(of);
                return;
            }
            const auto next = [&bags] {
                std::int64_t first = bags.front().sample();
                for (const BagsOfBlock& of : bags)
                    first = std::min(first, of.sample());
                return first;
            };
            for (std::int64_t sample = next(); sample != std::numeric_limits<std::int64_t>::max(); sample = next())
                for (BagsOfBlock& of : bags)
                    if (of.sample() == sample) one_bag(of);
        }
    };
};

}  // namespace detail

SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, GroupFamily) {
    return code_from<EmbeddingDomain, detail::GroupBody>();
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
