// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <boost/mp11.hpp>

#include "shardwise/comm/wire.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/embedding/blocks.hpp"
#include "shardwise/embedding/cost.hpp"
#include "shardwise/embedding/exchange_ids.hpp"
#include "shardwise/embedding/forms.hpp"
#include "shardwise/embedding/lanes.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// Vectors home to the ranks whose samples they belong to, and gradients back to the owners of the rows.

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

/// Adds what a flush of vectors moves between the owner of a block and the source of its samples.
template <class Wire, class Pooling>
void shape_vectors(const EmbeddingCost& cost, TrafficMatrix& flush, bool home) {
    for (int owner = 0; owner < cost.ranks(); ++owner) {
        for (const BlockPlace& place : cost.placement->owned[static_cast<std::size_t>(owner)]) {
            const int dim = cost.placement->shard(place).columns.count;
            const auto block = static_cast<std::size_t>(cost.placement->block_index(place.feature, place.shard));
            for (int source = 0; source < cost.ranks(); ++source) {
                if (source == owner) continue;
                const std::int64_t n =
                    Pooling::pooled ? cost.samples(source) : cost.counts[static_cast<std::size_t>(source)][block].ids;
                TierTraffic& cell = home ? flush.at(owner, source) : flush.at(source, owner);
                cell.payload += n * dim * static_cast<std::int64_t>(Wire::bytes);
            }
        }
    }
}

}  // namespace detail

/// The adjoint of ExchangeVectors: the gradient of each block to the rank that sent it. Sizes are known on both sides.
template <class Wire, class Pooling>
struct ExchangeGradients {
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<ExchangeGradients>;
    using Crosses = World;
    static constexpr bool reads_state = false;
    static std::string name() { return std::string{"Exchange<World, Gradients, "} + Wire::name + ">"; }

    struct Tape {
        std::vector<VectorBlock> sent;     // (block)
        std::vector<VectorBlock> arrived;  // as the lane of ids
        detail::Arrivals<Wire> arrivals;
    };

    template <class V>
    static void begin(StepEnv&, V& view) {
        Tape& tape = view.template tape<ExchangeGradients>();
        tape.sent = view.lanes().vectors;
        tape.arrived.clear();
        std::int64_t elements = 0;
        for (const IdBlock& block : view.lanes().ids)
            elements += rows_of(block) * block.head.dim;
        tape.arrivals.begin(*view.lanes().memory, elements);
    }
    template <class V>
    static PartSize size(StepEnv&, V& view, int peer) {
        PartSize part;
        for_sent(view, peer, [&](const VectorBlock& block) {
            part.payload += block.head.n * block.head.dim * static_cast<std::int64_t>(Wire::bytes);
        });
        return part;
    }
    template <class V>
    static void pack(StepEnv&, V& view, int peer, ByteWriter& to) {
        for_sent(view, peer, [&](const VectorBlock& block) { detail::put_vectors<Wire>(to, block, nullptr); });
    }
    template <class V>
    static std::int64_t expected(StepEnv&, V& view, int peer) {
        std::int64_t bytes = 0;
        for (const IdBlock& block : view.lanes().ids)
            if (block.head.source == peer)
                bytes += rows_of(block) * block.head.dim * static_cast<std::int64_t>(Wire::bytes);
        return bytes;
    }
    template <class V>
    static void unpack(StepEnv& env, V& view, int peer, ByteReader& from) {
        take_until(env, view, peer);
        Tape& tape = view.template tape<ExchangeGradients>();
        for (const IdBlock& block : view.lanes().ids)
            if (block.head.source == peer) tape.arrived.push_back(tape.arrivals.read(head_of(block), from));
    }
    template <class V>
    static void end(StepEnv& env, V& view) {
        take_until(env, view, env.topology.ranks());
        view.lanes().vectors = view.template tape<ExchangeGradients>().arrived;
    }
    static void memory(const EmbeddingCost& cost, int rank, MemoryTally& tally) {
        std::int64_t elements = 0;
        cost.for_lookups(rank, [&](int source, std::size_t block, int dim) {
            elements += cost.vectors<Pooling>(source, block) * dim;
        });
        tally.need(Wire::exact ? 0 : 4 * elements);
    }
    static void shape(EmbeddingCost& cost, TrafficMatrix& flush) {
        detail::shape_vectors<Wire, Pooling>(cost, flush, false);
    }

  private:
    static std::int64_t rows_of(const IdBlock& block) { return Pooling::pooled ? block.head.n : block.ids; }
    static Head head_of(const IdBlock& block) {
        Head head = block.head;
        head.n = rows_of(block);
        return head;
    }
    template <class V, class Use>
    static void for_sent(V& view, int owner, Use use) {
        const Placement& placement = *view.lanes().placement;
        for (const BlockPlace& place : placement.owned[static_cast<std::size_t>(owner)])
            use(view.template tape<ExchangeGradients>()
                    .sent[static_cast<std::size_t>(placement.block_index(place.feature, place.shard))]);
    }
    /// Takes over the blocks that stay here, at their place in the order of sources.
    template <class V>
    static void take_until(StepEnv& env, V& view, int peer) {
        Tape& tape = view.template tape<ExchangeGradients>();
        const auto& ids = view.lanes().ids;
        const std::size_t here = tape.arrived.size();
        if (peer < env.rank || here >= ids.size() || ids[here].head.source != env.rank) return;
        for_sent(view, env.rank, [&](const VectorBlock& block) { tape.arrived.push_back(tape.arrivals.keep(block)); });
    }
};

/// Each block of vectors home to its source, looked up into one message a peer; receivers know all sizes from the ids
/// that they sent. Blocks of one's own samples stay as they are (looked up and rounded, where the wire rounds).
template <class Forward, class Backward, class Pooling>
struct ExchangeVectors {
    template <class Form>
    using Out = std::enable_if_t<std::is_same_v<Form, OwnedVectors>, HomeVectors>;
    using Adjoint = Plan<ExchangeGradients<Backward, Pooling>>;
    using Uses = boost::mp11::mp_list<ExchangeVectors, ExchangeIds>;
    using Crosses = World;
    static constexpr bool reads_state = true;
    static std::string name() { return std::string{"Exchange<World, Vectors, "} + Forward::name + ">"; }

    struct Tape {
        std::vector<VectorBlock> sent;  // as the lane of ids
        std::vector<VectorBlock> home;  // (block)
        detail::Arrivals<Forward> arrivals;
        Buffer<float> tile;  // where rows are looked up and do not stay
    };

    template <class V>
    static void begin(StepEnv& env, V& view) {
        Tape& tape = view.template tape<ExchangeVectors>();
        tape.sent = view.lanes().vectors;
        const auto& asked = view.template tape<ExchangeIds>().sent;
        tape.home.assign(asked.size(), {});
        std::int64_t elements = 0;
        for (const IdBlock& block : asked)
            elements += rows_of(block) * block.head.dim;
        tape.arrivals.begin(*view.lanes().memory, elements);
        tape.tile.on(*view.lanes().memory).resize(static_cast<std::size_t>(tile_of(*view.lanes().placement, env.rank)));
    }
    template <class V>
    static PartSize size(StepEnv&, V& view, int peer) {
        PartSize part;
        for (const VectorBlock& block : view.template tape<ExchangeVectors>().sent)
            if (block.head.source == peer)
                part.payload += block.head.n * block.head.dim * static_cast<std::int64_t>(Forward::bytes);
        return part;
    }
    template <class V>
    static void pack(StepEnv&, V& view, int peer, ByteWriter& to) {
        Tape& tape = view.template tape<ExchangeVectors>();
        for (const VectorBlock& block : tape.sent)
            if (block.head.source == peer) detail::put_vectors<Forward>(to, block, tape.tile.data());
    }
    template <class V>
    static std::int64_t expected(StepEnv&, V& view, int peer) {
        std::int64_t bytes = 0;
        for_asked(view, peer, [&](const IdBlock& block, VectorBlock&) {
            bytes += rows_of(block) * block.head.dim * static_cast<std::int64_t>(Forward::bytes);
        });
        return bytes;
    }
    template <class V>
    static void unpack(StepEnv&, V& view, int peer, ByteReader& from) {
        Tape& tape = view.template tape<ExchangeVectors>();
        for_asked(view, peer, [&](const IdBlock& block, VectorBlock& home) {
            Head head = block.head;
            head.n = rows_of(block);
            home = tape.arrivals.read(head, from);
        });
    }
    template <class V>
    static void end(StepEnv& env, V& view) {
        Tape& tape = view.template tape<ExchangeVectors>();
        for (const VectorBlock& block : tape.sent)
            if (block.head.source == env.rank)
                tape.home[static_cast<std::size_t>(view.lanes().placement->block_index(
                    block.head.feature, block.head.shard))] = tape.arrivals.keep(block);
        view.lanes().vectors = tape.home;
    }
    static void memory(const EmbeddingCost& cost, int rank, MemoryTally& tally) {
        std::int64_t elements = 0;
        for (int owner = 0; owner < cost.ranks(); ++owner)
            cost.for_lookups(owner, [&](int source, std::size_t block, int dim) {
                if (source == rank) elements += cost.vectors<Pooling>(source, block) * dim;
            });
        tally.need(Forward::exact ? 0 : 4 * elements);
        tally.need(4 * tile_of(*cost.placement, rank));
    }
    static void shape(EmbeddingCost& cost, TrafficMatrix& flush) {
        detail::shape_vectors<Forward, Pooling>(cost, flush, true);
    }

  private:
    static std::int64_t rows_of(const IdBlock& block) { return Pooling::pooled ? block.head.n : block.ids; }
    /// Floats of the tile on a rank: enough for its widest shard, none where vectors go straight into the message.
    static std::int64_t tile_of(const Placement& placement, int rank) {
        std::int64_t elements = 0;
        if (!Forward::exact && Pooling::pooled)
            for (const BlockPlace& place : placement.owned[static_cast<std::size_t>(rank)])
                elements = std::max(elements, detail::tile_elements(placement.shard(place).columns.count));
        return elements;
    }
    template <class V, class Use>
    static void for_asked(V& view, int owner, Use use) {
        const Placement& placement = *view.lanes().placement;
        for (const BlockPlace& place : placement.owned[static_cast<std::size_t>(owner)]) {
            const auto block = static_cast<std::size_t>(placement.block_index(place.feature, place.shard));
            use(view.template tape<ExchangeIds>().sent[block], view.template tape<ExchangeVectors>().home[block]);
        }
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI
