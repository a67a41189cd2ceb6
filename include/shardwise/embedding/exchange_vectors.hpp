// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory_resource>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/mp11.hpp>

#include "shardwise/comm/wire.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/embedding/blocks.hpp"
#include "shardwise/embedding/cost.hpp"
#include "shardwise/embedding/forms.hpp"
#include "shardwise/embedding/lanes.hpp"
#include "shardwise/embedding/relays.hpp"
#include "shardwise/embedding/route.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// Vectors on their way home to the ranks whose samples they belong to, and gradients back.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// Appends a block's rows to a message in the wire's precision. Sums that are yet to be looked up go straight into it
/// where the wire is exact, through `tile` otherwise (tile_elements of the block's columns).
template <class Wire>
void put_vectors(ByteWriter& to, const VectorBlock& block, float* tile) {
    const std::int64_t dim = block.head.dim;
    std::byte* at = to.skip(static_cast<std::size_t>(block.head.n * dim) * Wire::bytes);
    const auto row_at = [&](std::int64_t i) { return at + static_cast<std::size_t>(i * dim) * Wire::bytes; };
    if constexpr (Wire::exact) {
        block.write(reinterpret_cast<float*>(at), dim);
    } else if (block.are == VectorsAre::bag_sums) {
        RowReader reader{block};
        const std::int64_t most = tile_rows(block.head.dim);
        for (std::int64_t i = 0; i < block.head.n; i += most) {
            const std::int64_t count = std::min(most, block.head.n - i);
            reader.next(count, tile);
            Wire::encode(tile, row_at(i), count * dim);
        }
    } else if (block.are == VectorsAre::in_memory && block.stride == dim) {
        Wire::encode(block.data, at, block.head.n * dim);
    } else {
        for (std::int64_t i = 0; i < block.head.n; ++i)
            Wire::encode(block.row_or_table_row(i), row_at(i), dim);
    }
}

/// Vectors that arrived: in place where the wire is exact, decoded into memory of one's own otherwise.
template <class Wire>
class Arrivals {
  public:
    void begin(std::pmr::memory_resource& memory, std::int64_t elements) {
        if constexpr (!Wire::exact) decoded_.on(memory).resize(static_cast<std::size_t>(elements));
        used_ = 0;
    }
    /// Reads head.n rows of a message.
    VectorBlock read(const Head& head, ByteReader& from) {
        const std::int64_t count = head.n * head.dim;
        if constexpr (Wire::exact) {
            return rows_in_memory(head, from.view<float>(count));
        } else {
            float* to = take(count);
            const auto* bytes = from.view<std::byte>(count * static_cast<std::int64_t>(Wire::bytes));
            if (bytes != nullptr) Wire::decode(bytes, to, count);
            return rows_in_memory(head, to);
        }
    }
    /// A block that stays on this rank is rounded as if it had travelled.
    VectorBlock keep(const VectorBlock& block) {
        if constexpr (Wire::exact) {
            return block;
        } else {
            const std::int64_t dim = block.head.dim;
            float* to = take(block.head.n * dim);
            block.write(to, dim);
            Wire::round(to, block.head.n * dim);
            return rows_in_memory(block.head, to);
        }
    }

  private:
    float* take(std::int64_t count) {
        float* at = decoded_.data() + used_;
        used_ += count;
        SHARDWISE_ASSERT(used_ <= static_cast<std::int64_t>(decoded_.size()));
        return at;
    }
    Buffer<float> decoded_;
    std::int64_t used_ = 0;
};

/// One way of vectors through an exchange: what leaves, what comes, and where it is then.
template <class Wire>
struct VectorsOnTheirWay {
    std::vector<VectorBlock> leaving;  // in the order of the lane
    Route to;
    std::vector<Head> coming;  // in the order of the lane behind the exchange
    Route from;
    std::vector<VectorBlock> arrived;  // as `coming`
    Arrivals<Wire> arrivals;
    Buffer<float> tile;  // where rows are looked up and do not stay

    /// `leaving` and `coming` are there. \param to_rank, from_rank  of the block with a number
    template <class ToRank, class FromRank>
    void begin(const Topology& topology, std::pmr::memory_resource& memory, ToRank to_rank, FromRank from_rank) {
        to.assign(topology.ranks(), leaving.size(), to_rank);
        from.assign(topology.ranks(), coming.size(), from_rank);
        arrived.assign(coming.size(), {});
        std::int64_t elements = 0;
        for (const Head& head : coming)
            elements += head.n * head.dim;
        arrivals.begin(memory, elements);
        std::int64_t most = 0;
        for (const VectorBlock& block : leaving)
            if (!Wire::exact && block.are == VectorsAre::bag_sums) most = std::max(most, tile_elements(block.head.dim));
        tile.on(memory).resize(static_cast<std::size_t>(most));
    }
    [[nodiscard]] static std::int64_t bytes_of(const Head& head) {
        return head.n * head.dim * static_cast<std::int64_t>(Wire::bytes);
    }
    [[nodiscard]] PartSize size(int peer) const {
        PartSize part;
        for (const std::size_t i : to.of(peer))
            part.payload += bytes_of(leaving[i].head);
        return part;
    }
    void pack(int peer, ByteWriter& message) {
        for (const std::size_t i : to.of(peer))
            put_vectors<Wire>(message, leaving[i], tile.data());
    }
    [[nodiscard]] std::int64_t expected(int peer) const {
        std::int64_t bytes = 0;
        for (const std::size_t i : from.of(peer))
            bytes += bytes_of(coming[i]);
        return bytes;
    }
    void unpack(int peer, ByteReader& message) {
        for (const std::size_t i : from.of(peer))
            arrived[i] = arrivals.read(coming[i], message);
    }
    /// Takes over the blocks that stay on this rank.
    void end(int me) {
        const auto mine = to.of(me);
        const auto here = from.of(me);
        SHARDWISE_ASSERT(mine.size() == here.size());
        for (std::size_t k = 0; k < mine.size(); ++k)
            arrived[here[k]] = arrivals.keep(leaving[mine[k]]);
    }
};

}  // namespace detail

/// The adjoint of an ExchangeVectors: the gradient of each block to the rank that sent it. Sizes are known on both
/// sides.
template <class Exchange, class Wire>
struct ExchangeGradients {
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<ExchangeGradients, Exchange>;
    using Crosses = typename Exchange::Crosses;
    using Tape = detail::VectorsOnTheirWay<Wire>;
    static constexpr bool reads_state = false;
    static std::string name() { return "Exchange<" + Crosses::name() + ", Gradients, " + Wire::name + ">"; }

    template <class V>
    static void begin(StepEnv& env, V& view) {
        Tape& tape = view.template tape<ExchangeGradients>();
        const auto& forward = view.template tape<Exchange>();
        tape.leaving = view.lanes().vectors;
        SHARDWISE_ASSERT(tape.leaving.size() == forward.coming.size());
        tape.coming.clear();
        for (const VectorBlock& block : forward.leaving)
            tape.coming.push_back(block.head);
        tape.begin(
            env.topology, *view.lanes().memory, [&](std::size_t i) { return forward.from_rank[i]; },
            [&](std::size_t i) { return forward.to_rank[i]; });
    }
    template <class V>
    static PartSize size(StepEnv&, V& view, int peer) {
        return view.template tape<ExchangeGradients>().size(peer);
    }
    template <class V>
    static void pack(StepEnv&, V& view, int peer, ByteWriter& to) {
        view.template tape<ExchangeGradients>().pack(peer, to);
    }
    template <class V>
    static std::int64_t expected(StepEnv&, V& view, int peer) {
        return view.template tape<ExchangeGradients>().expected(peer);
    }
    template <class V>
    static void unpack(StepEnv&, V& view, int peer, ByteReader& from) {
        view.template tape<ExchangeGradients>().unpack(peer, from);
    }
    template <class V>
    static void end(StepEnv& env, V& view) {
        Tape& tape = view.template tape<ExchangeGradients>();
        tape.end(env.rank);
        view.lanes().vectors = tape.arrived;
    }
    static void memory(const EmbeddingCost& cost, int rank, MemoryTally& tally) {
        std::int64_t elements = 0;
        for (const auto& block : cost.way.back()[static_cast<std::size_t>(rank)])
            elements += block.head.n * block.head.dim;
        tally.need(Wire::exact ? 0 : 4 * elements);
    }
    static void shape(EmbeddingCost& cost, TrafficMatrix& flush) {
        cost.vectors = std::move(cost.way.back());
        cost.way.pop_back();
        for (int sender = 0; sender < cost.ranks(); ++sender)
            for (const auto& block : cost.vectors[static_cast<std::size_t>(sender)]) {
                const int holder = Crosses::toward(cost.topology(), sender, block.head.source);
                if (holder != sender) flush.at(holder, sender).payload += Tape::bytes_of(block.head);
            }
    }
};

/// Each block of vectors one hop home inside G, looked up into one message a peer; receivers know all sizes. World:
/// from the ranks that looked up to the source. Neighbouring ranks (OneHost, OneTower): to the member with the source's
/// index, which relays them. PeersOf<> those: from the relays to the source. Blocks that stay on their rank stay as
/// they are (looked up and rounded, where the wire rounds).
template <Group G, class Forward, class Backward>
struct ExchangeVectors {
    static constexpr bool to_relays = G::consecutive && !std::is_same_v<G, World>;
    template <class Form>
    using Out = typename AfterHop<G, Form>::type;
    using Adjoint = Plan<ExchangeGradients<ExchangeVectors, Backward>>;
    using Uses = boost::mp11::mp_list<ExchangeVectors>;
    using Crosses = G;
    static constexpr bool reads_state = true;
    static std::string name() { return "Exchange<" + G::name() + ", Vectors, " + Forward::name + ">"; }

    struct Tape : detail::VectorsOnTheirWay<Forward> {
        std::vector<int> to_rank;    // of each that leaves
        std::vector<int> from_rank;  // of each that comes
    };

    template <class V>
    static void begin(StepEnv& env, V& view) {
        Tape& tape = view.template tape<ExchangeVectors>();
        const Lanes& lanes = view.lanes();
        tape.leaving = lanes.vectors;
        tape.coming = to_relays ? lanes.relayed : lanes.home;
        tape.to_rank.clear();
        for (const VectorBlock& block : tape.leaving)
            tape.to_rank.push_back(G::toward(env.topology, env.rank, block.head.source));
        tape.from_rank.clear();
        for (const Head& head : tape.coming)
            tape.from_rank.push_back(G::toward(env.topology, env.rank, head.owner));
        tape.begin(
            env.topology, *lanes.memory, [&](std::size_t i) { return tape.to_rank[i]; },
            [&](std::size_t i) { return tape.from_rank[i]; });
    }
    template <class V>
    static PartSize size(StepEnv&, V& view, int peer) {
        return view.template tape<ExchangeVectors>().size(peer);
    }
    template <class V>
    static void pack(StepEnv&, V& view, int peer, ByteWriter& to) {
        view.template tape<ExchangeVectors>().pack(peer, to);
    }
    template <class V>
    static std::int64_t expected(StepEnv&, V& view, int peer) {
        return view.template tape<ExchangeVectors>().expected(peer);
    }
    template <class V>
    static void unpack(StepEnv&, V& view, int peer, ByteReader& from) {
        view.template tape<ExchangeVectors>().unpack(peer, from);
    }
    template <class V>
    static void end(StepEnv& env, V& view) {
        Tape& tape = view.template tape<ExchangeVectors>();
        tape.end(env.rank);
        view.lanes().vectors = tape.arrived;
    }
    static void memory(const EmbeddingCost& cost, int rank, MemoryTally& tally) {
        std::int64_t elements = 0;
        std::int64_t tile = 0;
        for (int holder = 0; holder < cost.ranks(); ++holder)
            for (const auto& block : cost.vectors[static_cast<std::size_t>(holder)]) {
                if (G::toward(cost.topology(), holder, block.head.source) == rank)
                    elements += block.head.n * block.head.dim;
                if (holder == rank && !block.looked_up && cost.pooled)
                    tile = std::max(tile, detail::tile_elements(block.head.dim));
            }
        tally.need(Forward::exact ? 0 : 4 * elements);
        tally.need(Forward::exact ? 0 : 4 * tile);
    }
    static void shape(EmbeddingCost& cost, TrafficMatrix& flush) {
        EmbeddingCost::Blocks next(static_cast<std::size_t>(cost.ranks()));
        for (int holder = 0; holder < cost.ranks(); ++holder)
            for (EmbeddingCost::Block block : cost.vectors[static_cast<std::size_t>(holder)]) {
                const int to = G::toward(cost.topology(), holder, block.head.source);
                if (to != holder) flush.at(holder, to).payload += Tape::bytes_of(block.head);
                block.looked_up |= to != holder || !Forward::exact;
                next[static_cast<std::size_t>(to)].push_back(block);
            }
        const auto key = [](const EmbeddingCost::Block& block) {
            return std::tuple{block.head.source, block.head.feature, block.head.shard};
        };
        for (auto& blocks : next)
            std::sort(blocks.begin(), blocks.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
        cost.way.push_back(std::move(cost.vectors));
        cost.vectors = std::move(next);
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI
