// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/mp11.hpp>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/embedding/blocks.hpp"
#include "shardwise/embedding/cost.hpp"
#include "shardwise/embedding/forms.hpp"
#include "shardwise/embedding/lanes.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/sharding/placement.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// Partial sums of bags whose rows are split, summed along the tree: at home, or at a relay before they travel on.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// How many blocks, from `first` on, are parts of the same bags.
[[nodiscard]] inline std::size_t of_one_bag(const VectorBlock* first, const VectorBlock* end) {
    const VectorBlock* behind = first;
    while (behind != end && behind->head.source == first->head.source && behind->head.feature == first->head.feature)
        ++behind;
    return static_cast<std::size_t>(behind - first);
}

/// Sums the parts of bags along the tree: ranks in order inside a host, then hosts.
class SumOfShards {
  public:
    /// Makes room for the sums of a lane's blocks.
    void prepare(const std::vector<VectorBlock>& lane, std::pmr::memory_resource& memory) {
        std::int64_t most = 0;
        const VectorBlock* const end = lane.data() + lane.size();
        for (const VectorBlock* first = lane.data(); first != end;) {
            const std::span<const VectorBlock> blocks{first, of_one_bag(first, end)};
            first += blocks.size();
            const bool tile = std::any_of(blocks.begin(), blocks.end(),
                                          [](const VectorBlock& b) { return b.are != VectorsAre::in_memory; });
            if (blocks.size() > 1) most = std::max(most, room(blocks[0].head.dim, tile));
        }
        scratch_.on(memory).resize(static_cast<std::size_t>(most));
    }
    /// What that takes, by the cost reader's lane.
    [[nodiscard]] static std::int64_t bytes(const std::vector<EmbeddingCost::Block>& lane) {
        std::int64_t most = 0;
        for (std::size_t first = 0; first < lane.size();) {
            bool tile = false;
            std::size_t end = first;
            for (; end < lane.size() && lane[end].head.source == lane[first].head.source &&
                   lane[end].head.feature == lane[first].head.feature;
                 ++end)
                tile |= !lane[end].looked_up;
            if (end - first > 1) most = std::max(most, room(lane[first].head.dim, tile));
            first = end;
        }
        return 4 * most;
    }
    /// out = the sum of `blocks`, which are parts of the same bags in ascending order of the ranks that looked them up.
    void operator()(const Topology& topology, const TablePlacement& table, std::span<const VectorBlock> blocks,
                    const MatrixView<float>& out) {
        const auto dim = static_cast<int>(out.columns());
        readers_.clear();
        for (const VectorBlock& block : blocks)
            readers_.emplace_back(block);
        const auto host_of = [&](std::size_t k) {
            return topology.host_of(table.shards[static_cast<std::size_t>(blocks[k].head.shard)].owner);
        };
        float* const host = scratch_.data();
        const std::int64_t most = tile_rows(dim);
        for (std::int64_t begin = 0; begin < out.rows(); begin += most) {
            const std::int64_t count = std::min(most, out.rows() - begin);
            for (RowReader& reader : readers_)  // a rank has one shard of a table, so one needs the tile
                reader.next(count, host + dim);
            for (std::int64_t i = 0; i < count; ++i) {
                float* __restrict to = out.row(begin + i);
                std::fill_n(to, dim, 0.0F);
                for (std::size_t k = 0; k < blocks.size();) {
                    const int here = host_of(k);
                    std::fill_n(host, dim, 0.0F);
                    for (; k < blocks.size() && host_of(k) == here; ++k) {
                        const float* __restrict part = readers_[k].row(i);
                        for (int d = 0; d < dim; ++d)
                            host[d] += part[d];
                    }
                    for (int d = 0; d < dim; ++d)
                        to[d] += host[d];
                }
            }
        }
    }

  private:
    /// Floats: a host's sum, and a tile for what is not in memory.
    static std::int64_t room(int dim, bool tile) { return dim + (tile ? tile_elements(dim) : 0); }

    Buffer<float> scratch_;
    std::vector<RowReader> readers_;  // (block)
};

}  // namespace detail

/// The adjoint of SumShards: every part of a sum gets the gradient of the sum. Local; copies no number.
template <class Sum>
struct ShareGradients {
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<Sum>;
    static constexpr bool reads_state = false;
    static std::string name() { return "ShareGradients"; }

    template <class V>
    static void run(StepEnv&, V& view) {
        auto& tape = view.template tape<Sum>();
        auto& lane = view.lanes().vectors;
        tape.parts.resize(tape.heads.size());
        for (std::size_t i = 0; i < tape.heads.size(); ++i) {
            tape.parts[i] = lane[tape.sum_of[i]];
            tape.parts[i].head = tape.heads[i];
        }
        lane.swap(tape.parts);
    }
    static void shape(EmbeddingCost& cost) {
        cost.vectors = std::move(cost.way.back());
        cost.way.pop_back();
    }
};

/// At a relay: the partial sums of a bag that came from inside G, summed along the tree, become one block, which has
/// the number of the first shard. So a bag crosses the rest of its way once. Local.
template <Group G>
struct SumShards {
    template <class Form>
    using Out = std::enable_if_t<std::is_same_v<Form, RelayedVectors<G>>, Form>;
    using Adjoint = Plan<ShareGradients<SumShards>>;
    using Uses = boost::mp11::mp_list<SumShards>;
    static constexpr bool reads_state = true;
    static std::string name() { return "SumShards<" + G::name() + ">"; }

    struct Tape {
        std::vector<Head> heads;          // as they came
        std::vector<std::size_t> sum_of;  // number of the sum that each is a part of
        std::vector<VectorBlock> sums;
        std::vector<VectorBlock> parts;  // of the gradient
        detail::SumOfShards sum;
        Buffer<float> buffer;
    };

    template <class V>
    static void run(StepEnv& env, V& view) {
        Lanes& lanes = view.lanes();
        Tape& tape = view.template tape<SumShards>();
        const std::vector<VectorBlock>& lane = lanes.vectors;
        tape.sum.prepare(lane, *lanes.memory);
        std::int64_t elements = 0;
        for_sums(lane, [&](std::span<const VectorBlock> parts) { elements += room(parts[0].head, parts.size()); });
        float* at = tape.buffer.on(*lanes.memory).resize(static_cast<std::size_t>(elements)).data();
        tape.heads.clear();
        tape.sum_of.clear();
        tape.sums.clear();
        for_sums(lane, [&](std::span<const VectorBlock> parts) {
            for (const VectorBlock& part : parts) {
                tape.heads.push_back(part.head);
                tape.sum_of.push_back(tape.sums.size());
            }
            const Head& head = parts[0].head;
            if (parts.size() == 1) {
                tape.sums.push_back(parts[0]);
                return;
            }
            tape.sum(env.topology, lanes.placement->table_of(head.feature), parts, {at, head.n, head.dim});
            tape.sums.push_back(rows_in_memory(head, at));
            at += room(head, parts.size());
        });
        lanes.vectors = tape.sums;
        // the samples' ranks expect as much: of each bag, one block from each group that has some of its shards
        const auto group_of = [&](const Head& head) { return G::member(env.topology, head.owner, 0); };
        const auto same = [&](const Head& a, const Head& b) {
            return a.feature == b.feature && group_of(a) == group_of(b);
        };
        lanes.home.erase(std::unique(lanes.home.begin(), lanes.home.end(), same), lanes.home.end());
    }
    static void memory(const EmbeddingCost& cost, int rank, MemoryTally& tally) {
        const auto& lane = cost.vectors[static_cast<std::size_t>(rank)];
        tally.need(detail::SumOfShards::bytes(lane));
        std::int64_t elements = 0;
        for (std::size_t i = 0; i < lane.size();) {
            std::size_t end = i;
            while (end < lane.size() && same_bags(lane[end], lane[i]))
                ++end;
            elements += room(lane[i].head, end - i);
            i = end;
        }
        tally.need(4 * elements);
    }
    static void shape(EmbeddingCost& cost) {
        EmbeddingCost::Blocks sums(cost.vectors.size());
        for (std::size_t rank = 0; rank < sums.size(); ++rank)
            for (const EmbeddingCost::Block& block : cost.vectors[rank]) {
                if (sums[rank].empty() || !same_bags(sums[rank].back(), block))
                    sums[rank].push_back(block);
                else
                    sums[rank].back().looked_up = true;
            }
        cost.way.push_back(std::move(cost.vectors));
        cost.vectors = std::move(sums);
    }

  private:
    template <class Use>
    static void for_sums(const std::vector<VectorBlock>& lane, Use use) {
        const VectorBlock* const end = lane.data() + lane.size();
        for (const VectorBlock* first = lane.data(); first != end;) {
            const std::span<const VectorBlock> parts{first, detail::of_one_bag(first, end)};
            use(parts);
            first += parts.size();
        }
    }
    static std::int64_t room(const Head& head, std::size_t parts) { return parts > 1 ? head.n * head.dim : 0; }
    static bool same_bags(const EmbeddingCost::Block& a, const EmbeddingCost::Block& b) {
        return a.head.source == b.head.source && a.head.feature == b.head.feature;
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI
