// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "shardwise/core/at.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/bytes.hpp"
#include "shardwise/embedding/kernels/row_groups.hpp"
#include "shardwise/embedding/steps/row_arrival.hpp"
#include "shardwise/embedding/steps/row_exchange.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

/// Rows and their sums, cut by destination; and what arrives, grouped by row again. Also the exchange of one flight.
struct RowsTape final : Exchange {
    struct Set {
        Buffer<std::byte> sums;           // (row, dim), by destination
        Buffer<LocalRow> rows;            // (row), by destination
        std::vector<std::int64_t> first;  // (member + 1)
        std::int64_t arrived = 0;
        bool dense = false;  // messages have all rows that may be dealt
    };
    std::vector<Set> sets;  // (slot)
    RowGroups groups;
    std::vector<detail::RowArrival> arrivals;
    Folder fold;
    std::vector<Buffer<float>> decoded;  // (member): where the wire is not exact

    void bind(const StepEnv& env, const HeldShards& held, Lanes& lanes, std::pmr::memory_resource& memory,
              const detail::RowElement& element, bool gather, bool from_partial) {
        rank_ = env.rank;
        digit_ = {env.group, env.under};
        held_ = &held;
        lanes_ = &lanes;
        memory_ = &memory;
        element_ = element;
        gather_ = gather;
        from_partial_ = from_partial;
        const auto members = static_cast<std::size_t>(env.group.size);
        sets.resize(lanes.rows.size());
        arrivals.clear();
        decoded.resize(members);
        for (std::size_t k = 0; k < lanes.rows.size(); ++k) {
            sets[k].dense = dense(held.shards[k]);
            cut(env.topology, lanes.rows[k], sets[k], members);
        }
    }
    [[nodiscard]] PartSize size(int peer) override {
        PartSize part;
        for (std::size_t k = 0; k < sets.size(); ++k)
            if (sets[k].dense) {
                const detail::DealtRows all = dealt(k, rank_, peer);
                part.payload += all.count * dim(k) * element_.on_wire() + all.mask_bytes();
            } else {
                part.control += 4;
                part.payload += range(sets[k], peer).count * (4 + dim(k) * element_.on_wire());
            }
        return part;
    }
    void pack(int peer, ByteWriter& to) override {
        const std::byte* const begin = to.position();
        for (const Set& set : sets)
            if (!set.dense) to.put(static_cast<std::uint32_t>(range(set, peer).count));
        for (const Set& set : sets) {
            const Range of = range(set, peer);
            if (!set.dense) to.put(set.rows.data() + of.first, of.count);
        }
        // Doubles are aligned by the padding that would else stand behind them: the size stays. Bits stand before them,
        // and behind what is narrower.
        if (element_.wide) {
            put_touched(peer, to);
            to.pad(begin);
        }
        for (std::size_t k = 0; k < sets.size(); ++k) {
            const Range of = range(sets[k], peer);
            const std::byte* const from = sets[k].sums.data() + of.first * dim(k) * element_.in_memory();
            const std::int64_t row = dim(k) * element_.on_wire();
            if (!sets[k].dense) {
                encode(from, to.skip(static_cast<std::size_t>(of.count * row)), of.count * dim(k));
                continue;
            }
            const detail::DealtRows all = dealt(k, rank_, peer);
            std::byte* const sums = zeros(to, all.count * row);
            for (std::int64_t i = 0; i < of.count; ++i)
                encode(from + i * dim(k) * element_.in_memory(), sums + all.place(at(sets[k].rows, of.first + i)) * row,
                       dim(k));
        }
        if (!element_.wide) put_touched(peer, to);
    }
    void unpack(int peer, ByteReader& from) override {
        const std::size_t first = arrivals.size();
        std::int64_t elements = 0;
        const int member = digit_.group.index(peer);
        for (std::size_t k = 0; k < sets.size(); ++k) {
            detail::RowArrival& arrival = arrivals.emplace_back();
            arrival.member = member;
            arrival.set = k;
            arrival.dealt = dealt(k, peer, rank_);
            if (!sets[k].dense) arrival.count = static_cast<std::int64_t>(from.get<std::uint32_t>());
            arrival.sent = sets[k].dense ? arrival.dealt.count : arrival.count;
            elements += arrival.sent * dim(k);
        }
        for (std::size_t k = 0; k < sets.size(); ++k)
            arrivals[first + k].rows = from.view<LocalRow>(arrivals[first + k].count);
        if (element_.wide) {
            get_touched(first, from);
            from.skip_padding();
        }
        if (from.overrun()) return;
        float* decode_to = nullptr;
        if (!element_.exact())
            decode_to = at(decoded, member).on(*memory_).resize(static_cast<std::size_t>(elements)).data();
        for (std::size_t k = 0; k < sets.size(); ++k) {
            detail::RowArrival& arrival = arrivals[first + k];
            const std::int64_t count = arrival.sent * dim(k);
            const auto* bytes = from.view<std::byte>(count * element_.on_wire());
            arrival.sums = bytes;
            if (element_.exact()) continue;
            if (bytes != nullptr) element_.codec->decode(bytes, decode_to, count);
            arrival.sums = reinterpret_cast<const std::byte*>(decode_to);
            decode_to += count;
        }
        if (!element_.wide) get_touched(first, from);
    }
    /// Groups what arrived and what stayed by row, contributions in the order of members.
    void end() override {
        for (std::size_t k = 0; k < sets.size(); ++k) {
            const Range mine = range(sets[k], rank_);
            detail::RowArrival& own = arrivals.emplace_back();
            own.member = digit_.group.index(rank_);
            own.set = k;
            own.count = mine.count;
            own.rows = sets[k].rows.data() + mine.first;
            own.sums = sets[k].sums.data() + mine.first * dim(k) * element_.in_memory();
        }
        std::sort(arrivals.begin(), arrivals.end(), [](const detail::RowArrival& a, const detail::RowArrival& b) {
            return a.set != b.set ? a.set < b.set : a.member < b.member;
        });
        for (Set& set : sets)
            set.arrived = 0;
        std::int64_t all = 0;
        for (const detail::RowArrival& arrival : arrivals) {
            sets[arrival.set].arrived += arrival.count;
            all += arrival.count;
        }
        groups.on(*memory_).begin(all, all, sets.size());
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
    [[nodiscard]] bool dense(const HeldShards::Shard& shard) const {
        return detail::travels_dense(shard.dense, gather_, from_partial_);
    }
    /// The rows that a member may have for another.
    [[nodiscard]] detail::DealtRows dealt(std::size_t k, int from, int to) const {
        return digit_.dealt(from, digit_.group.index(gather_ ? from : to), held_->shards[k].rows);
    }
    /// A bit for each row that may be dealt, of all dense sets.
    void put_touched(int peer, ByteWriter& to) const {
        for (std::size_t k = 0; k < sets.size(); ++k) {
            if (!sets[k].dense) continue;
            const Range of = range(sets[k], peer);
            const detail::DealtRows all = dealt(k, rank_, peer);
            std::byte* const touched = zeros(to, all.mask_bytes());
            for (std::int64_t i = of.first; i < of.first + of.count; ++i) {
                const std::int64_t place = all.place(at(sets[k].rows, i));
                touched[place / 8] |= std::byte{1} << place % 8;
            }
        }
    }
    void get_touched(std::size_t first, ByteReader& from) {
        for (std::size_t k = 0; k < sets.size(); ++k) {
            if (!sets[k].dense) continue;
            detail::RowArrival& arrival = arrivals[first + k];
            arrival.touched = from.view<std::byte>(arrival.dealt.mask_bytes());
            if (arrival.touched == nullptr) return;
            for (std::int64_t i = 0; i < arrival.dealt.mask_bytes(); ++i)
                arrival.count += std::popcount(std::to_integer<unsigned>(arrival.touched[i]));
        }
    }
    void encode(const std::byte* from, std::byte* to, std::int64_t count) const {
        if (!element_.wide) {
            element_.codec->encode(reinterpret_cast<const float*>(from), to, count);
        } else if (count != 0) {
            std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(double));
        }
    }
    static std::byte* zeros(ByteWriter& to, std::int64_t bytes) {
        std::byte* const here = to.skip(static_cast<std::size_t>(bytes));
        std::fill_n(here, bytes, std::byte{0});
        return here;
    }
    [[nodiscard]] std::int64_t dim(std::size_t k) const { return held_->shards[k].dim; }
    [[nodiscard]] std::size_t destination(LocalRow row) const {
        return gather_ ? 0 : static_cast<std::size_t>(digit_.of(row));
    }
    [[nodiscard]] Range range(const Set& set, int peer) const {
        const auto m = gather_ ? 0 : static_cast<std::size_t>(digit_.group.index(peer));
        return {set.first[m], set.first[m + 1] - set.first[m]};
    }
    /// Folds the rows of a set, and deals their sums over the members.
    void cut(const Topology& topology, const RowSet& rows, Set& set, std::size_t members) {
        const RowSet from = fold.begin(rows, topology);
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
            fold(from, terms, topology, sum, element_.wide);
            if (!element_.exact()) element_.codec->round(reinterpret_cast<float*>(sum), from.dim);
        }
        for (std::size_t m = members; m > 0; --m)
            set.first[m] = set.first[m - 1];
        set.first[0] = 0;
    }
    void group(std::size_t k, std::span<const detail::RowArrival> arrived) {
        Set& set = sets[k];
        const std::int64_t bytes = dim(k) * element_.in_memory();
        const std::span<Contribution> contributions = groups.contribute(set.arrived);
        std::size_t number = 0;
        for (const detail::RowArrival& arrival : arrived) {
            const int source = digit_.group.member(rank_, arrival.member);
            arrival.for_each([&](LocalRow, std::int64_t place) {
                contributions[number++] = {.gradient = arrival.sums + place * bytes, .weight = 1.0F, .source = source};
            });
        }
        const HeldShards::Shard& shard = held_->shards[k];
        lanes_->rows[k] = groups.group(static_cast<int>(k), shard.dim, shard.rows, set.arrived, [&](auto use) {
            std::uint64_t next = 0;
            for (const detail::RowArrival& arrival : arrived)
                arrival.for_each([&](LocalRow row, std::int64_t) { use(row, next++); });
        });
        lanes_->rows[k].wide = element_.wide;
    }

    int rank_ = 0;
    detail::Digit digit_;
    const HeldShards* held_ = nullptr;
    Lanes* lanes_ = nullptr;
    std::pmr::memory_resource* memory_ = nullptr;
    detail::RowElement element_{};
    bool gather_ = false;
    bool from_partial_ = false;
};

namespace detail {

/// The cost reader's side of RowsTape.
template <class Cost>
struct RowsCost {
    Cost& cost;
    Digit digit;
    bool gather;
    bool from_partial;

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
                cost.for_shards(from, [&](std::size_t key, int t, const ShardPlacement& shard) {
                    const std::int64_t row_bytes = shard.columns.count * element_bytes;
                    if (travels_dense(own_sums(*cost.placement, t), gather, from_partial)) {
                        const std::int64_t all =
                            digit.dealt(from, gather ? digit.group.index(from) : number, shard.rows).count;
                        cell.payload += all * row_bytes + (all + 7) / 8;
                    } else {
                        cell.control += 4;
                        cell.payload += cost.touched_rows(from, key, to_member(number)) * (4 + row_bytes);
                    }
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
        tape.bind(env, held, view.lanes(), memory, row_element(order, view.template state<Wires>().backward, Gather),
                  Gather, FromPartial);
        return tape;
    }
    template <class Cost>
    static void memory(const CostEnv& env, const Cost& cost, int rank, MemoryTally& tally) {
        const RowElement element = row_element(*cost.order, cost.wires->backward, Gather);
        const Digit digit{env.group, env.under};
        const int mine = env.group.index(rank);
        const auto to_me = RowsCost<const Cost>{cost, digit, Gather, FromPartial}.to_member(mine);
        std::vector<std::int64_t> decoded(static_cast<std::size_t>(env.group.size), 0);
        RowGroups::Needs groups;
        cost.for_shards(rank, [&](std::size_t key, int t, const ShardPlacement& shard) {
            const bool dense = travels_dense(own_sums(*cost.placement, t), Gather, FromPartial);
            const int dim = shard.columns.count;
            std::int64_t arrived = 0;
            for (int number = 0; number < env.group.size; ++number) {
                const std::int64_t count = rounded_up(cost.touched_rows(env.group.member(rank, number), key, to_me));
                arrived += count;
                if (element.exact() || number == mine) continue;
                const DealtRows dealt = digit.dealt(env.group.member(rank, number), Gather ? number : mine, shard.rows);
                at(decoded, number) += 4 * (dense ? dealt.count : count) * dim;
            }
            const std::int64_t sent = rounded_up(cost.touched_rows(rank, key));
            tally.need(element.in_memory() * sent * dim);
            tally.need(4 * sent);
            groups.add(arrived, arrived, shard.rows);
        });
        groups.tally(tally);
        for (const std::int64_t bytes : decoded)
            tally.need(bytes);
        tally.need(cost.order->scratch_bytes(cost.widest(rank)));
    }
    template <class Cost>
    static void shape(const CostEnv& env, Cost& cost, TrafficMatrixOf<typename Cost::Number>& round) {
        const RowElement element = row_element(*cost.order, cost.wires->backward, Gather);
        const RowsCost<Cost> rows{cost, {env.group, env.under}, Gather, FromPartial};
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
