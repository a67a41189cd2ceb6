// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include <boost/mp11.hpp>

#include "shardwise/comm/wire.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/bytes.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/embedding/cost.hpp"
#include "shardwise/embedding/fold.hpp"
#include "shardwise/embedding/lanes.hpp"
#include "shardwise/embedding/row_groups.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// One level of the sums of replicated rows: each touched row to the member of a group that sums it, and its sum back
/// to all members.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// A level of the tree deals rows over its members by one digit of the row's number.
template <class G>
struct Level;
template <>
struct Level<OneHost> {
    static int member_of(const Topology& t, LocalRow row) {
        return static_cast<int>(row % static_cast<LocalRow>(t.ranks_per_host));
    }
};
template <>
struct Level<Peers> {
    static int member_of(const Topology& t, LocalRow row) {
        return static_cast<int>(row / static_cast<LocalRow>(t.ranks_per_host) % static_cast<LocalRow>(t.hosts));
    }
};

/// Doubles on the wire: what a lossless wire makes of partial sums in double.
struct Fp64 {
    static constexpr const char* name = "fp64";
    static constexpr std::size_t bytes = 8;
    static constexpr bool exact = true;
    static void encode(const double* from, std::byte* to, std::int64_t count) noexcept {
        if (count != 0) std::memcpy(to, from, static_cast<std::size_t>(count) * bytes);
    }
    static void round(double*, std::int64_t) noexcept {}
};

/// What partial sums are between two levels: as wide as the order sums, or floats that a lossy wire rounds.
template <class Wire, class Order>
using PartialSum = std::conditional_t<Wire::exact, typename Order::sum, float>;

/// Rows and their sums, cut by destination; and what arrives, grouped by row again. Shared by scatter, which sends
/// partial sums, and gather, which sends totals. \tparam From  of the contributions
template <class G, class AskedWire, class Order, class From, bool Gather>
struct RowExchange {
    using To = std::conditional_t<Gather, float, PartialSum<AskedWire, Order>>;
    using Wire = std::conditional_t<std::is_same_v<To, double>, Fp64, AskedWire>;

    struct Set {
        Buffer<To> sums;                  // (row, dim), by destination
        Buffer<LocalRow> rows;            // (row), by destination
        std::vector<std::int64_t> first;  // (member + 1)
        RowGroups groups;
        std::int64_t arrived = 0;
    };
    struct Arrival {
        int member = 0;
        std::size_t set = 0;
        std::int64_t count = 0;
        const LocalRow* rows = nullptr;
        const To* sums = nullptr;  // (count, dim)
    };
    struct Tape {
        std::vector<Set> sets;  // (shard of the store)
        std::vector<Arrival> arrivals;
        FoldScratch<Order> scratch;
        std::vector<Buffer<To>> decoded;  // (member): where the wire is not exact
    };

    static void begin(StepEnv& env, Lanes& lanes, Tape& tape) {
        const auto members = static_cast<std::size_t>(G::size(env.topology));
        tape.sets.resize(lanes.rows.size());
        tape.arrivals.clear();
        tape.decoded.resize(members);
        tape.scratch.prepare(lanes);
        for (std::size_t k = 0; k < lanes.rows.size(); ++k) {
            const RowSet& from = lanes.rows[k];
            Set& set = tape.sets[k];
            set.first.assign(members + 1, 0);
            for (std::int64_t i = 0; i < from.touched(); ++i)
                ++set.first[destination(env, from.terms(i).row) + 1];
            for (std::size_t m = 0; m < members; ++m)
                set.first[m + 1] += set.first[m];
            const std::int64_t touched = set.first[members];
            set.sums.on(*lanes.memory).resize(static_cast<std::size_t>(touched * from.dim));
            set.rows.on(*lanes.memory).resize(static_cast<std::size_t>(touched));
            for (std::int64_t i = 0; i < from.touched(); ++i) {
                const RowTerms terms = from.terms(i);
                const std::int64_t to = set.first[destination(env, terms.row)]++;
                set.rows[static_cast<std::size_t>(to)] = terms.row;
                To* sum = set.sums.data() + to * from.dim;
                fold<Order, From>(from, terms, env.topology, tape.scratch, sum);
                Wire::round(sum, from.dim);
            }
            for (std::size_t m = members; m > 0; --m)
                set.first[m] = set.first[m - 1];
            set.first[0] = 0;
        }
    }
    static PartSize size(StepEnv& env, Lanes& lanes, Tape& tape, int peer) {
        PartSize part;
        for (std::size_t k = 0; k < tape.sets.size(); ++k) {
            const auto [first, count] = range(env, tape.sets[k], peer);
            part.control += 4;
            part.payload += count * (4 + lanes.rows[k].dim * static_cast<std::int64_t>(Wire::bytes));
        }
        return part;
    }
    static void pack(StepEnv& env, Lanes& lanes, Tape& tape, int peer, ByteWriter& to) {
        [[maybe_unused]] const std::byte* const begin = to.position();
        for (const Set& set : tape.sets)
            to.put(static_cast<std::uint32_t>(range(env, set, peer).count));
        for (const Set& set : tape.sets) {
            const auto [first, count] = range(env, set, peer);
            to.put(set.rows.data() + first, count);
        }
        // Doubles are aligned by the padding that would else stand behind them: the size stays.
        if constexpr (sizeof(To) == part_alignment) to.pad(begin);
        for (std::size_t k = 0; k < tape.sets.size(); ++k) {
            const auto [first, count] = range(env, tape.sets[k], peer);
            const std::int64_t dim = lanes.rows[k].dim;
            Wire::encode(tape.sets[k].sums.data() + first * dim,
                         to.skip(static_cast<std::size_t>(count * dim) * Wire::bytes), count * dim);
        }
    }
    static void unpack(StepEnv& env, Lanes& lanes, Tape& tape, int peer, ByteReader& from) {
        const std::size_t first = tape.arrivals.size();
        std::int64_t elements = 0;
        const int member = G::index(env.topology, peer);
        for (std::size_t k = 0; k < tape.sets.size(); ++k) {
            const auto count = static_cast<std::int64_t>(from.get<std::uint32_t>());
            tape.arrivals.push_back({.member = member, .set = k, .count = count, .rows = nullptr, .sums = nullptr});
            elements += count * lanes.rows[k].dim;
        }
        for (std::size_t k = 0; k < tape.sets.size(); ++k)
            tape.arrivals[first + k].rows = from.view<LocalRow>(tape.arrivals[first + k].count);
        if constexpr (sizeof(To) == part_alignment) from.skip_padding();
        if (from.overrun()) return;
        Buffer<To>& decoded = tape.decoded[static_cast<std::size_t>(member)];
        if constexpr (!Wire::exact) decoded.on(*lanes.memory).resize(static_cast<std::size_t>(elements));
        std::int64_t at = 0;
        for (std::size_t k = 0; k < tape.sets.size(); ++k) {
            Arrival& arrival = tape.arrivals[first + k];
            const std::int64_t dim = lanes.rows[k].dim;
            if constexpr (Wire::exact) {
                arrival.sums = from.view<To>(arrival.count * dim);
            } else {
                const auto* bytes = from.view<std::byte>(arrival.count * dim * static_cast<std::int64_t>(Wire::bytes));
                if (bytes != nullptr) Wire::decode(bytes, decoded.data() + at, arrival.count * dim);
                arrival.sums = decoded.data() + at;
            }
            at += arrival.count * dim;
        }
    }
    /// Groups what arrived and what stayed by row, contributions in the order of members.
    static void end(StepEnv& env, Lanes& lanes, Tape& tape) {
        const int mine = G::index(env.topology, env.rank);
        for (std::size_t k = 0; k < tape.sets.size(); ++k) {
            const auto [first, count] = range(env, tape.sets[k], env.rank);
            const std::int64_t dim = lanes.rows[k].dim;
            tape.arrivals.push_back({.member = mine,
                                     .set = k,
                                     .count = count,
                                     .rows = tape.sets[k].rows.data() + first,
                                     .sums = tape.sets[k].sums.data() + first * dim});
        }
        std::sort(tape.arrivals.begin(), tape.arrivals.end(), [](const Arrival& a, const Arrival& b) {
            return a.set != b.set ? a.set < b.set : a.member < b.member;
        });
        for (Set& set : tape.sets)
            set.arrived = 0;
        for (const Arrival& arrival : tape.arrivals)
            tape.sets[arrival.set].arrived += arrival.count;
        std::size_t a = 0;
        for (std::size_t k = 0; k < tape.sets.size(); ++k) {
            Set& set = tape.sets[k];
            Buffer<Contribution>& contributions = set.groups.on(*lanes.memory).resize(set.arrived);
            const std::size_t begin = a;
            std::size_t number = 0;
            for (; a < tape.arrivals.size() && tape.arrivals[a].set == k; ++a) {
                const Arrival& arrival = tape.arrivals[a];
                const int source = G::member(env.topology, env.rank, arrival.member);
                for (std::int64_t i = 0; i < arrival.count; ++i)
                    contributions[number++] = {
                        .gradient = arrival.sums + i * lanes.rows[k].dim, .weight = 1.0F, .source = source};
            }
            const ShardStore& shard = lanes.store->shards()[k];
            lanes.rows[k] = set.groups.group(static_cast<int>(k), shard.dim, shard.rows, set.arrived, [&](auto use) {
                std::uint64_t next = 0;
                for (std::size_t i = begin; i < a; ++i)
                    for (std::int64_t r = 0; r < tape.arrivals[i].count; ++r)
                        use(tape.arrivals[i].rows[r], next++);
            });
        }
    }

    static void memory(const EmbeddingCost& cost, int rank, MemoryTally& tally) {
        const Topology& t = cost.topology();
        const int mine = G::index(t, rank);
        std::vector<std::int64_t> decoded(static_cast<std::size_t>(G::size(t)), 0);
        cost.for_shards(rank, [&](std::size_t key, int, const ShardPlacement& shard) {
            const int dim = shard.columns.count;
            std::int64_t arrived = 0;
            for (int index = 0; index < G::size(t); ++index) {
                std::int64_t count = 0;
                for (const std::int64_t row : cost.touched[static_cast<std::size_t>(G::member(t, rank, index))][key])
                    if (Gather || Level<G>::member_of(t, static_cast<LocalRow>(row)) == mine) ++count;
                arrived += count;
                if (!Wire::exact && index != mine) decoded[static_cast<std::size_t>(index)] += 4 * count * dim;
            }
            const auto sent = static_cast<std::int64_t>(cost.touched[static_cast<std::size_t>(rank)][key].size());
            tally.need(static_cast<std::int64_t>(sizeof(To)) * sent * dim);
            tally.need(4 * sent);
            RowGroups::tally(arrived, arrived, shard.rows, tally);
        });
        for (const std::int64_t bytes : decoded)
            tally.need(bytes);
        tally.need(FoldScratch<Order>::bytes(cost.widest(rank)));
    }
    static void shape(EmbeddingCost& cost, TrafficMatrix& flush) {
        const Topology& t = cost.topology();
        for (int from = 0; from < t.ranks(); ++from) {
            for (int index = 0; index < G::size(t); ++index) {
                const int to = G::member(t, from, index);
                if (to == from) continue;
                TierTraffic& cell = flush.at(from, to);
                for_tables(cost, [&](std::size_t key, int dim) {
                    cell.control += 4;
                    for (const std::int64_t row : cost.touched[static_cast<std::size_t>(from)][key])
                        if (Gather || Level<G>::member_of(t, static_cast<LocalRow>(row)) == index)
                            cell.payload += 4 + dim * static_cast<std::int64_t>(Wire::bytes);
                });
            }
        }
        auto before = cost.touched;
        for (int rank = 0; rank < t.ranks(); ++rank) {
            for_tables(cost, [&](std::size_t key, int) {
                std::vector<std::int64_t> rows;
                for (int index = 0; index < G::size(t); ++index)
                    for (const std::int64_t row : before[static_cast<std::size_t>(G::member(t, rank, index))][key])
                        if (Gather || Level<G>::member_of(t, static_cast<LocalRow>(row)) == G::index(t, rank))
                            rows.push_back(row);
                std::sort(rows.begin(), rows.end());
                rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
                cost.touched[static_cast<std::size_t>(rank)][key] = std::move(rows);
            });
        }
    }

  private:
    struct Range {
        std::int64_t first;
        std::int64_t count;
    };
    static std::size_t destination(const StepEnv& env, LocalRow row) {
        return Gather ? 0 : static_cast<std::size_t>(Level<G>::member_of(env.topology, row));
    }
    static Range range(const StepEnv& env, const Set& set, int peer) {
        const auto m = Gather ? 0 : static_cast<std::size_t>(G::index(env.topology, peer));
        return {set.first[m], set.first[m + 1] - set.first[m]};
    }
    /// Calls use(key, dim) for every table; a replicated table has one shard, known by its first feature's block.
    template <class Use>
    static void for_tables(const EmbeddingCost& cost, Use use) {
        int last = -1;
        for (const FeaturePlacement& feature : cost.placement->features) {
            if (feature.table == last) continue;
            last = feature.table;
            use(static_cast<std::size_t>(feature.first_block),
                cost.placement->tables[static_cast<std::size_t>(feature.table)].dim);
        }
    }
};

/// The exchange step around a RowExchange.
template <class G, class Wire, class Order, class From, bool Gather>
struct RowExchangeStep {
    using Core = RowExchange<G, Wire, Order, From, Gather>;
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<RowExchangeStep>;
    using Crosses = G;
    using Tape = typename Core::Tape;
    static constexpr bool reads_state = false;
    static std::string name() {
        return std::string{Gather ? "GatherRows<" : "ScatterRows<"} + G::name() + ", " + Core::Wire::name + ">";
    }

    template <class V>
    static void begin(StepEnv& env, V& view) {
        Core::begin(env, view.lanes(), view.template tape<RowExchangeStep>());
    }
    template <class V>
    static PartSize size(StepEnv& env, V& view, int peer) {
        return Core::size(env, view.lanes(), view.template tape<RowExchangeStep>(), peer);
    }
    template <class V>
    static void pack(StepEnv& env, V& view, int peer, ByteWriter& to) {
        Core::pack(env, view.lanes(), view.template tape<RowExchangeStep>(), peer, to);
    }
    template <class V>
    static std::int64_t expected(StepEnv&, V&, int) {
        return PartSize::unknown;
    }
    template <class V>
    static void unpack(StepEnv& env, V& view, int peer, ByteReader& from) {
        Core::unpack(env, view.lanes(), view.template tape<RowExchangeStep>(), peer, from);
    }
    template <class V>
    static void end(StepEnv& env, V& view) {
        Core::end(env, view.lanes(), view.template tape<RowExchangeStep>());
    }
    static void memory(const EmbeddingCost& cost, int rank, MemoryTally& tally) { Core::memory(cost, rank, tally); }
    static void shape(EmbeddingCost& cost, TrafficMatrix& flush) { Core::shape(cost, flush); }
};

}  // namespace detail

/// Rank, then host partials of each touched row to the one member of G that sums them. One message a member: 4 bytes a
/// table of control, 4 + dim * element bytes a row of payload. \tparam From  of the contributions that it finds
template <class G, class Wire = Fp32, class Order = Tree, class From = float>
using ScatterRows = detail::RowExchangeStep<G, Wire, Order, From, false>;
/// Sums of rows from the members that made them to all members of G.
template <class G, class Wire = Fp32, class Order = Tree, class From = float>
using GatherRows = detail::RowExchangeStep<G, Wire, Order, From, true>;

}  // namespace shardwise::inline SHARDWISE_ABI
