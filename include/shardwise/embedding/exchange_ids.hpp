// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/cost.hpp"
#include "shardwise/embedding/forms.hpp"
#include "shardwise/embedding/lanes.hpp"
#include "shardwise/embedding/relays.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// Ids to the ranks that own their rows.

namespace shardwise::inline SHARDWISE_ABI {

/// One message a peer: the number of samples, 8 bytes a block of the peer's (feature, shard) pairs with its count, then
/// lengths (4 bytes a sample; absent where every bag has one id or none has any), rows (4 bytes an id) and weights (4
/// bytes an id, where the batch has some). Blocks of one's own rows stay where they are. To a relay of sequences, 8
/// bytes more with the number of ids of each block that it passes on and does not own.
template <class Relays = NoRelays>
struct ExchangeIds {
    template <class Form>
    using Out = std::enable_if_t<std::is_same_v<Form, ShardIds>, OwnedIds<false, Relays>>;
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<ExchangeIds>;
    using Crosses = World;
    static constexpr bool reads_state = false;
    static std::string name() { return "Exchange<World, Ids>"; }

    struct Tape {
        std::vector<IdBlock> sent;                       // (block)
        std::vector<IdBlock> arrived;                    // by source, then my blocks
        std::vector<std::int64_t> samples;               // (source)
        std::vector<std::vector<std::int64_t>> vectors;  // (source, block), where relays are told
    };

    template <class V>
    static void begin(StepEnv& env, V& view) {
        Tape& tape = view.template tape<ExchangeIds>();
        tape.sent = view.lanes().ids;
        tape.arrived.clear();
        tape.samples.assign(static_cast<std::size_t>(env.topology.ranks()), 0);
        tape.samples[static_cast<std::size_t>(env.rank)] = tape.sent.empty() ? 0 : tape.sent.front().head.n;
        if constexpr (Relays::counts) {
            tape.vectors.resize(tape.samples.size());
            auto& mine = tape.vectors[static_cast<std::size_t>(env.rank)];
            mine.clear();
            for (const IdBlock& block : tape.sent)
                mine.push_back(block.ids);
        }
    }
    template <class V>
    static PartSize size(StepEnv& env, V& view, int peer) {
        PartSize part{.payload = 0, .control = 8};
        for_told(*view.lanes().placement, env.rank, peer, [&](const BlockPlace&) { part.control += 8; });
        for_blocks(view, peer, [&](const IdBlock& block) {
            part.control += 8 + (sends_lengths(block) ? 4 * block.head.n : 0);
            part.payload += (block.weights != nullptr ? 8 : 4) * block.ids;
        });
        return part;
    }
    template <class V>
    static void pack(StepEnv& env, V& view, int peer, ByteWriter& to) {
        const auto& blocks = view.template tape<ExchangeIds>().sent;
        to.put(static_cast<std::uint32_t>(blocks.empty() ? 0 : blocks.front().head.n));
        to.put(static_cast<std::uint32_t>(view.lanes().batch->weighted() ? 1 : 0));
        for_blocks(view, peer, [&](const IdBlock& block) {
            to.put(static_cast<std::uint64_t>(block.ids) << 1U | (block.lengths == nullptr ? 1U : 0U));
        });
        const Placement& placement = *view.lanes().placement;
        for_told(placement, env.rank, peer, [&](const BlockPlace& place) {
            to.put(blocks[static_cast<std::size_t>(placement.block_index(place.feature, place.shard))].ids);
        });
        for_blocks(view, peer, [&](const IdBlock& block) {
            if (sends_lengths(block)) to.put(block.lengths, block.head.n);
            to.put(block.rows, block.ids);
            if (block.weights != nullptr) to.put(block.weights, block.ids);
        });
    }
    template <class V>
    static std::int64_t expected(StepEnv&, V&, int) {
        return PartSize::unknown;
    }
    template <class V>
    static void unpack(StepEnv& env, V& view, int peer, ByteReader& from) {
        const Placement& placement = *view.lanes().placement;
        Tape& tape = view.template tape<ExchangeIds>();
        auto& arrived = tape.arrived;
        const auto samples = from.get<std::uint32_t>();
        tape.samples[static_cast<std::size_t>(peer)] = samples;
        const bool weighted = from.get<std::uint32_t>() != 0;
        const std::size_t first = arrived.size();
        const auto& mine = placement.owned[static_cast<std::size_t>(env.rank)];
        for (const BlockPlace& place : mine) {
            const auto count = from.get<std::uint64_t>();
            IdBlock block{.head = {.source = peer,
                                   .owner = env.rank,
                                   .feature = place.feature,
                                   .shard = place.shard,
                                   .dim = placement.shard(place).columns.count,
                                   .n = samples},
                          .ids = static_cast<std::int64_t>(count >> 1U)};
            static constexpr std::int32_t some = 0;  // stands for "has lengths" until they are read
            if ((count & 1U) == 0) block.lengths = &some;
            arrived.push_back(block);
        }
        if constexpr (Relays::counts) {
            auto& vectors = tape.vectors[static_cast<std::size_t>(peer)];
            vectors.assign(static_cast<std::size_t>(placement.blocks), 0);
            for (std::size_t i = first; i < arrived.size(); ++i)
                vectors[index(placement, arrived[i].head)] = arrived[i].ids;
            for_told(placement, peer, env.rank, [&](const BlockPlace& place) {
                vectors[static_cast<std::size_t>(placement.block_index(place.feature, place.shard))] =
                    from.get<std::int64_t>();
            });
        }
        for (std::size_t i = first; i < arrived.size() && !from.overrun(); ++i) {
            IdBlock& block = arrived[i];
            block.lengths = sends_lengths(block) ? from.view<std::int32_t>(block.head.n) : nullptr;
            block.rows = from.view<LocalRow>(block.ids);
            if (weighted) block.weights = from.view<float>(block.ids);
        }
    }
    template <class V>
    static void end(StepEnv& env, V& view) {
        Tape& tape = view.template tape<ExchangeIds>();
        const auto after = std::find_if(tape.arrived.begin(), tape.arrived.end(),
                                        [&](const IdBlock& block) { return block.head.source > env.rank; });
        const auto position = after - tape.arrived.begin();
        const auto count = static_cast<std::ptrdiff_t>(tape.arrived.size());
        for_blocks(view, env.rank, [&](const IdBlock& block) { tape.arrived.push_back(block); });
        std::rotate(tape.arrived.begin() + position, tape.arrived.begin() + count, tape.arrived.end());
        view.lanes().ids = tape.arrived;
        if constexpr (Relays::any) find_relayed(env, view);
    }

    static void shape(EmbeddingCost& cost, TrafficMatrix& flush) {
        for (int from = 0; from < cost.ranks(); ++from) {
            const bool weighted = (*cost.batches)[static_cast<std::size_t>(from)].weighted();
            for (int to = 0; to < cost.ranks(); ++to) {
                if (from == to) continue;
                TierTraffic& cell = flush.at(from, to);
                cell.control += 4 + 4;  // samples, flags
                for_told(*cost.placement, from, to, [&](const BlockPlace&) { cell.control += 8; });
                for (const BlockPlace& place : cost.placement->owned[static_cast<std::size_t>(to)]) {
                    const auto& count =
                        cost.counts[static_cast<std::size_t>(from)]
                                   [static_cast<std::size_t>(cost.placement->block_index(place.feature, place.shard))];
                    cell.control += 8;
                    if (!count.single && count.ids != 0) cell.control += 4 * cost.samples(from);
                    cell.payload += 4 * count.ids;
                    if (weighted) cell.payload += 4 * count.ids;
                }
            }
        }
    }

  private:
    static std::size_t index(const Placement& placement, const Head& head) {
        return static_cast<std::size_t>(placement.block_index(head.feature, head.shard));
    }
    /// Calls use(BlockPlace) for the blocks whose sizes `source` tells `relay`.
    template <class Use>
    static void for_told(const Placement& placement, int source, int relay, Use use) {
        if constexpr (Relays::counts) {
            if (!Relays::relays(placement.topology, relay, source)) return;
            Relays::for_blocks(placement, relay, [&](const BlockPlace& place) {
                if (placement.shard(place).owner != relay) use(place);
            });
        }
    }
    template <class V>
    static void find_relayed(const StepEnv& env, V& view) {
        const Tape& tape = view.template tape<ExchangeIds>();
        const Placement& placement = *view.lanes().placement;
        auto& relayed = view.lanes().relayed;
        relayed.clear();
        for (int source = 0; source < env.topology.ranks(); ++source) {
            if (!Relays::relays(env.topology, env.rank, source)) continue;
            Relays::for_blocks(placement, env.rank, [&](const BlockPlace& place) {
                Head& head = relayed.emplace_back(Head{.source = source,
                                                       .owner = placement.shard(place).owner,
                                                       .feature = place.feature,
                                                       .shard = place.shard,
                                                       .dim = placement.shard(place).columns.count,
                                                       .n = tape.samples[static_cast<std::size_t>(source)]});
                if constexpr (Relays::counts)
                    head.n = tape.vectors[static_cast<std::size_t>(source)][index(placement, head)];
            });
        }
    }
    static bool sends_lengths(const IdBlock& block) { return block.lengths != nullptr && block.ids != 0; }
    template <class V, class Use>
    static void for_blocks(V& view, int owner, Use use) {
        const Placement& placement = *view.lanes().placement;
        for (const BlockPlace& place : placement.owned[static_cast<std::size_t>(owner)])
            use(view.template tape<ExchangeIds>()
                    .sent[static_cast<std::size_t>(placement.block_index(place.feature, place.shard))]);
    }
};

/// An exchange of nothing but envelopes, by which every rank learns every other rank's error. Stands in plans whose ids
/// do not cross the world otherwise. One message a peer, no payload.
struct Agree {
    template <class Form>
    using Out = Form;
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<>;
    using Crosses = World;
    static constexpr bool reads_state = false;
    static std::string name() { return "Agree<World>"; }

    template <class V>
    static void begin(StepEnv&, V&) {}
    template <class V>
    static PartSize size(StepEnv&, V&, int) {
        return {};
    }
    template <class V>
    static void pack(StepEnv&, V&, int, ByteWriter&) {}
    template <class V>
    static std::int64_t expected(StepEnv&, V&, int) {
        return 0;
    }
    template <class V>
    static void unpack(StepEnv&, V&, int, ByteReader&) {}
    template <class V>
    static void end(StepEnv&, V&) {}
    static void shape(EmbeddingCost&, TrafficMatrix&) {}
};

}  // namespace shardwise::inline SHARDWISE_ABI
