// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shardwise/core/at.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/bytes.hpp"
#include "shardwise/embedding/kernels/row_groups.hpp"
#include "shardwise/embedding/steps/row_exchange.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

namespace detail {

/// How a level deals rows over its members: by one digit of the row's number.
struct Digit {
    Members group;
    Members under;
    [[nodiscard]] int of(LocalRow row) const {
        return static_cast<int>(row / static_cast<LocalRow>(under.size) % static_cast<LocalRow>(group.size));
    }
};

}  // namespace detail

/// Rows and their sums, cut by destination; and what arrives, grouped by row again. Also the exchange of one flight.
struct RowsTape final : Exchange {
    struct Set {
        Buffer<std::byte> sums;           // (row, dim), by destination
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
        const std::byte* sums = nullptr;  // (count, dim)
    };
    std::vector<Set> sets;  // (slot)
    std::vector<Arrival> arrivals;
    Folder fold;
    std::vector<Buffer<float>> decoded;  // (member): where the wire is not exact

    /// What the sums are that leave: floats that a wire may round, or doubles.
    struct Element {
        bool from_wide;  ///< contributions are doubles
        bool wide;       ///< sums are
        const Codec* codec;

        [[nodiscard]] std::int64_t in_memory() const { return wide ? 8 : 4; }
        [[nodiscard]] std::int64_t on_wire() const { return wide ? 8 : codec->bytes; }
        [[nodiscard]] bool exact() const { return wide || codec->exact; }
    };
    static Element element(const OrderTraits& order, const Codec& codec, bool gather, bool from_partial) {
        const bool partial = order.wide && codec.exact;
        return {.from_wide = from_partial && partial, .wide = !gather && partial, .codec = &codec};
    }

    void bind(const StepEnv& env, const HeldShards& held, Lanes& lanes, std::pmr::memory_resource& memory,
              const Element& element, bool gather) {
        rank_ = env.rank;
        digit_ = {env.group, env.under};
        held_ = &held;
        lanes_ = &lanes;
        memory_ = &memory;
        element_ = element;
        gather_ = gather;
        const auto members = static_cast<std::size_t>(env.group.size);
        sets.resize(lanes.rows.size());
        arrivals.clear();
        decoded.resize(members);
        for (std::size_t k = 0; k < lanes.rows.size(); ++k)
            cut(env.topology, lanes.rows[k], sets[k], members);
    }
    [[nodiscard]] PartSize size(int peer) override {
        PartSize part;
        for (std::size_t k = 0; k < sets.size(); ++k) {
            part.control += 4;
            part.payload += range(sets[k], peer).count * (4 + dim(k) * element_.on_wire());
        }
        return part;
    }
    void pack(int peer, ByteWriter& to) override {
        const std::byte* const begin = to.position();
        for (const Set& set : sets)
            to.put(static_cast<std::uint32_t>(range(set, peer).count));
        for (const Set& set : sets) {
            const Range of = range(set, peer);
            to.put(set.rows.data() + of.first, of.count);
        }
        // Doubles are aligned by the padding that would else stand behind them: the size stays.
        if (element_.wide) to.pad(begin);
        for (std::size_t k = 0; k < sets.size(); ++k) {
            const Range of = range(sets[k], peer);
            const std::int64_t count = of.count * dim(k);
            const std::byte* const from = sets[k].sums.data() + of.first * dim(k) * element_.in_memory();
            if (element_.wide) {
                to.put(reinterpret_cast<const double*>(from), count);
            } else {
                element_.codec->encode(reinterpret_cast<const float*>(from),
                                       to.skip(static_cast<std::size_t>(count * element_.on_wire())), count);
            }
        }
    }
    void unpack(int peer, ByteReader& from) override {
        const std::size_t first = arrivals.size();
        std::int64_t elements = 0;
        const int member = digit_.group.index(peer);
        for (std::size_t k = 0; k < sets.size(); ++k) {
            const auto count = static_cast<std::int64_t>(from.get<std::uint32_t>());
            arrivals.push_back({.member = member, .set = k, .count = count, .rows = nullptr, .sums = nullptr});
            elements += count * dim(k);
        }
        for (std::size_t k = 0; k < sets.size(); ++k)
            arrivals[first + k].rows = from.view<LocalRow>(arrivals[first + k].count);
        if (element_.wide) from.skip_padding();
        if (from.overrun()) return;
        float* decode_to = nullptr;
        if (!element_.exact())
            decode_to = at(decoded, member).on(*memory_).resize(static_cast<std::size_t>(elements)).data();
        for (std::size_t k = 0; k < sets.size(); ++k) {
            Arrival& arrival = arrivals[first + k];
            const std::int64_t count = arrival.count * dim(k);
            const auto* bytes = from.view<std::byte>(count * element_.on_wire());
            arrival.sums = bytes;
            if (element_.exact()) continue;
            if (bytes != nullptr) element_.codec->decode(bytes, decode_to, count);
            arrival.sums = reinterpret_cast<const std::byte*>(decode_to);
            decode_to += count;
        }
    }
    /// Groups what arrived and what stayed by row, contributions in the order of members.
    void end() override {
        for (std::size_t k = 0; k < sets.size(); ++k) {
            const Range mine = range(sets[k], rank_);
            arrivals.push_back({.member = digit_.group.index(rank_),
                                .set = k,
                                .count = mine.count,
                                .rows = sets[k].rows.data() + mine.first,
                                .sums = sets[k].sums.data() + mine.first * dim(k) * element_.in_memory()});
        }
        std::sort(arrivals.begin(), arrivals.end(), [](const Arrival& a, const Arrival& b) {
            return a.set != b.set ? a.set < b.set : a.member < b.member;
        });
        for (Set& set : sets)
            set.arrived = 0;
        for (const Arrival& arrival : arrivals)
            sets[arrival.set].arrived += arrival.count;
        std::size_t end = 0;
        for (std::size_t k = 0; k < sets.size(); ++k) {
            const std::size_t begin = end;
            while (end < arrivals.size() && arrivals[end].set == k)
                ++end;
            group(k, {arrivals.data() + begin, end - begin});
        }
    }

  private:
    struct Range {
        std::int64_t first;
        std::int64_t count;
    };
    [[nodiscard]] std::int64_t dim(std::size_t k) const { return held_->shards[k].dim; }
    [[nodiscard]] std::size_t destination(LocalRow row) const {
        return gather_ ? 0 : static_cast<std::size_t>(digit_.of(row));
    }
    [[nodiscard]] Range range(const Set& set, int peer) const {
        const auto m = gather_ ? 0 : static_cast<std::size_t>(digit_.group.index(peer));
        return {set.first[m], set.first[m + 1] - set.first[m]};
    }
    /// Folds the rows of a set, and deals their sums over the members.
    void cut(const Topology& topology, const RowSet& from, Set& set, std::size_t members) {
        set.first.assign(members + 1, 0);
        for (std::int64_t i = 0; i < from.touched(); ++i)
            ++set.first[destination(from.terms(i).row) + 1];
        for (std::size_t m = 0; m < members; ++m)
            set.first[m + 1] += set.first[m];
        const std::int64_t touched = set.first[members];
        const std::int64_t bytes = from.dim * element_.in_memory();
        set.sums.on(*memory_).resize(static_cast<std::size_t>(touched * bytes));
        set.rows.on(*memory_).resize(static_cast<std::size_t>(touched));
        for (std::int64_t i = 0; i < from.touched(); ++i) {
            const RowTerms terms = from.terms(i);
            const std::int64_t to = set.first[destination(terms.row)]++;
            at(set.rows, to) = terms.row;
            std::byte* const sum = set.sums.data() + to * bytes;
            fold(from, terms, topology, sum, element_.from_wide, element_.wide);
            if (!element_.exact()) element_.codec->round(reinterpret_cast<float*>(sum), from.dim);
        }
        for (std::size_t m = members; m > 0; --m)
            set.first[m] = set.first[m - 1];
        set.first[0] = 0;
    }
    void group(std::size_t k, std::span<const Arrival> arrived) {
        Set& set = sets[k];
        const std::int64_t bytes = dim(k) * element_.in_memory();
        Buffer<Contribution>& contributions = set.groups.on(*memory_).resize(set.arrived);
        std::size_t number = 0;
        for (const Arrival& arrival : arrived) {
            const int source = digit_.group.member(rank_, arrival.member);
            for (std::int64_t i = 0; i < arrival.count; ++i)
                contributions[number++] = {.gradient = arrival.sums + i * bytes, .weight = 1.0F, .source = source};
        }
        const HeldShards::Shard& shard = held_->shards[k];
        lanes_->rows[k] = set.groups.group(static_cast<int>(k), shard.dim, shard.rows, set.arrived, [&](auto use) {
            std::uint64_t next = 0;
            for (const Arrival& arrival : arrived)
                for (std::int64_t r = 0; r < arrival.count; ++r)
                    use(arrival.rows[r], next++);
        });
    }

    int rank_ = 0;
    detail::Digit digit_;
    const HeldShards* held_ = nullptr;
    Lanes* lanes_ = nullptr;
    std::pmr::memory_resource* memory_ = nullptr;
    Element element_{};
    bool gather_ = false;
};

namespace detail {

/// The cost reader's side of RowsTape.
template <class Cost>
struct RowsCost {
    Cost& cost;
    Digit digit;
    bool gather;

    /// Whether the member with a number is sent, or keeps, a row.
    [[nodiscard]] auto to_member(int number) const {
        return [*this, number](LocalRow row) { return gather || digit.of(row) == number; };
    }
    void send(std::int64_t element_bytes, TrafficMatrixOf<typename Cost::Number>& round) const {
        for (int from = 0; from < cost.ranks(); ++from)
            for (int number = 0; number < digit.group.size; ++number) {
                const int to = digit.group.member(from, number);
                if (to == from) continue;
                auto& cell = round.at(from, to);
                cost.for_shards(from, [&](std::size_t key, int, const ShardPlacement& shard) {
                    cell.control += 4;
                    cell.payload +=
                        cost.touched_rows(from, key, to_member(number)) * (4 + shard.columns.count * element_bytes);
                });
            }
    }
    /// The rows that each rank has behind the exchange.
    void arrive() const {
        const auto before = cost.touched;
        for (int rank = 0; rank < cost.ranks(); ++rank)
            cost.for_shards(rank, [&](std::size_t key, int, const ShardPlacement&) {
                typename Cost::Touched rows;
                for (int number = 0; number < digit.group.size; ++number)
                    rows.add(at(before, digit.group.member(rank, number))[key], to_member(digit.group.index(rank)));
                rows.settle();
                at(cost.touched, rank)[key] = std::move(rows);
            });
    }
};

template <bool Gather, bool FromPartial>
struct RowsBody {
    using Tape = RowsTape;
    using Family = RowsFamily<Gather, FromPartial>;
    using View = shardwise::View<Lanes, typename Family::Tapes, typename Family::Sees>;

    static Exchange& begin(StepEnv& env, View& view) {
        Tape& tape = view.template tape<RowsTape>();
        const auto& order = view.template state<OrderTraits>();
        const auto& held = view.template state<HeldShards>();
        std::pmr::memory_resource& memory = *view.template state<WorkMemory>().resource;
        tape.fold.prepare(order, held.widest, memory);
        tape.bind(env, held, view.lanes(), memory,
                  RowsTape::element(order, view.template state<Wires>().backward, Gather, FromPartial), Gather);
        return tape;
    }
    template <class Cost>
    static void memory(const CostEnv& env, const Cost& cost, int rank, MemoryTally& tally) {
        const auto element = RowsTape::element(*cost.order, cost.wires->backward, Gather, FromPartial);
        const int mine = env.group.index(rank);
        const auto to_me = RowsCost<const Cost>{cost, {env.group, env.under}, Gather}.to_member(mine);
        std::vector<std::int64_t> decoded(static_cast<std::size_t>(env.group.size), 0);
        cost.for_shards(rank, [&](std::size_t key, int, const ShardPlacement& shard) {
            const int dim = shard.columns.count;
            std::int64_t arrived = 0;
            for (int number = 0; number < env.group.size; ++number) {
                const std::int64_t count = rounded_up(cost.touched_rows(env.group.member(rank, number), key, to_me));
                arrived += count;
                if (!element.exact() && number != mine) at(decoded, number) += 4 * count * dim;
            }
            const std::int64_t sent = rounded_up(cost.touched_rows(rank, key));
            tally.need(element.in_memory() * sent * dim);
            tally.need(4 * sent);
            RowGroups::tally(arrived, arrived, shard.rows, tally);
        });
        for (const std::int64_t bytes : decoded)
            tally.need(bytes);
        tally.need(cost.order->scratch_bytes(cost.widest(rank)));
    }
    template <class Cost>
    static void shape(const CostEnv& env, Cost& cost, TrafficMatrixOf<typename Cost::Number>& round) {
        const auto element = RowsTape::element(*cost.order, cost.wires->backward, Gather, FromPartial);
        const RowsCost<Cost> rows{cost, {env.group, env.under}, Gather};
        rows.send(element.on_wire(), round);
        rows.arrive();
    }
};

}  // namespace detail

SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, RowsFamily<false, false>) {
    return code_from<EmbeddingDomain, detail::RowsBody<false, false>>();
}
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, RowsFamily<false, true>) {
    return code_from<EmbeddingDomain, detail::RowsBody<false, true>>();
}
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, RowsFamily<true, false>) {
    return code_from<EmbeddingDomain, detail::RowsBody<true, false>>();
}
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, RowsFamily<true, true>) {
    return code_from<EmbeddingDomain, detail::RowsBody<true, true>>();
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
