// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "shardwise/core/at.hpp"
#include "shardwise/core/bytes.hpp"
#include "shardwise/embedding/copies/steps.hpp"

namespace shardwise::inline SHARDWISE_ABI::copies {

namespace detail {

/// Calls use(numbers, count) for the parts of a row in the order in which they travel: weights, then moments.
template <class Use>
void for_parts(const CopiedShards& all, const CopiedShards::Shard& shard, LocalRow row, Use use) {
    ShardStore& store = *shard.store;
    const auto number = static_cast<std::int64_t>(row);
    const std::int64_t elements = std::int64_t{store.dim} * all.element_slots;
    use(store.weights.data() + number * store.dim, std::int64_t{store.dim});
    if (elements > 0) use(store.element_state.data() + number * elements, elements);
    if (all.row_slots > 0) use(store.row_state.data() + number * all.row_slots, std::int64_t{all.row_slots});
}

/// The most floats of a part.
inline std::int64_t widest_part(int dim, int element_slots, int row_slots) {
    return std::max<std::int64_t>(std::int64_t{dim} * std::max(1, element_slots), row_slots);
}

}  // namespace detail

struct ToldRows final : Exchange {
    std::vector<Buffer<LocalRow>> mine;                        // (shard)
    std::vector<std::vector<std::span<const LocalRow>>> told;  // (shard, copy)

    void bind(const StepEnv& env, CopiedShards& all, Lanes& lanes, std::pmr::memory_resource& memory) {
        lanes_ = &lanes;
        memory_ = &memory;
        mine.resize(all.shards.size());
        told.resize(all.shards.size());
        bytes_ = 0;
        for (std::size_t k = 0; k < all.shards.size(); ++k) {
            const CopiedShards::Shard& shard = all.shards[k];
            LocalRow* to = mine[k].on(memory).resize(static_cast<std::size_t>(shard.marks->count(shard.slot))).data();
            shard.marks->for_each(shard.slot, [&](LocalRow row) { *to++ = row; });
            shard.marks->clear(shard.slot);
            told[k].assign(static_cast<std::size_t>(env.topology.ranks()), {});
            at(told[k], env.rank) = mine[k].span();
            bytes_ += 4 * std::ssize(mine[k].span());
        }
    }
    [[nodiscard]] PartSize size(int) override { return {.payload = bytes_, .control = 4 * std::ssize(mine)}; }
    void pack(int, ByteWriter& to) override {
        for (const Buffer<LocalRow>& rows : mine)
            to.put(static_cast<std::uint32_t>(rows.size()));
        for (const Buffer<LocalRow>& rows : mine)
            to.put(rows.data(), std::ssize(rows.span()));
    }
    void unpack(int peer, ByteReader& from) override {
        const std::uint32_t* const counts = from.view<std::uint32_t>(std::ssize(mine));
        for (std::size_t k = 0; counts != nullptr && k < mine.size(); ++k) {
            const LocalRow* const rows = from.view<LocalRow>(counts[k]);
            if (rows != nullptr) at(told[k], peer) = {rows, counts[k]};
        }
    }
    void end() override {
        lanes_->rows.resize(mine.size());
        for (std::size_t k = 0; k < mine.size(); ++k)
            lanes_->rows[k].on(*memory_).merge(told[k]);
    }

  private:
    Lanes* lanes_ = nullptr;
    std::pmr::memory_resource* memory_ = nullptr;
    std::int64_t bytes_ = 0;
};

/// What one copy sends to one, and hears from it.
struct RowsOfCopies final : Exchange {
    Buffer<double> scratch;
    std::vector<std::int64_t> out;      // (copy): floats
    std::vector<std::int64_t> in;       // (copy): floats
    std::vector<const float*> arrived;  // (copy): what of it is not read yet
    std::vector<const float*> values;   // (copy): of one part of a row

    void bind(const StepEnv& env, CopiedShards& all, const Lanes& lanes, std::pmr::memory_resource& memory) {
        topology_ = env.topology;
        me_ = env.rank;
        all_ = &all;
        lanes_ = &lanes;
        const auto copies = static_cast<std::size_t>(topology_.ranks());
        out.assign(copies, 0);
        in.assign(copies, 0);
        arrived.assign(copies, nullptr);
        values.assign(copies, nullptr);
        std::int64_t widest = 0;
        for (std::size_t k = 0; k < all.shards.size(); ++k) {
            const CopiedShards::Shard& shard = all.shards[k];
            widest = std::max(widest, detail::widest_part(shard.store->dim, all.element_slots, all.row_slots));
            const std::int64_t floats = all.floats(shard);
            for (int averager = 0; averager < topology_.ranks(); ++averager)
                if (averager != me_)
                    lanes.rows[k].for_each_of(
                        averager, [&](LocalRow, auto touched) { at(out, averager) += touched(me_) ? floats : 0; });
            lanes.rows[k].for_each_of(me_, [&](LocalRow, auto touched) {
                for (int copy = 0; copy < topology_.ranks(); ++copy)
                    at(in, copy) += touched(copy) ? floats : 0;
            });
        }
        scratch.on(memory).resize(static_cast<std::size_t>(2 * widest));
    }
    [[nodiscard]] PartSize size(int peer) override { return {.payload = 4 * at(out, peer), .control = 0}; }
    void pack(int peer, ByteWriter& to) override {
        for (std::size_t k = 0; k < all_->shards.size(); ++k)
            lanes_->rows[k].for_each_of(peer, [&](LocalRow row, auto touched) {
                if (touched(me_))
                    detail::for_parts(*all_, all_->shards[k], row,
                                      [&](const float* part, std::int64_t count) { to.put(part, count); });
            });
    }
    [[nodiscard]] std::int64_t expected(int peer) override { return 4 * at(in, peer); }
    void unpack(int peer, ByteReader& from) override { at(arrived, peer) = from.view<float>(at(in, peer)); }
    void end() override {
        for (std::size_t k = 0; k < all_->shards.size(); ++k)
            lanes_->rows[k].for_each_of(me_, [&](LocalRow row, auto touched) {
                detail::for_parts(*all_, all_->shards[k], row, [&](float* mine, std::int64_t count) {
                    for (int copy = 0; copy < topology_.ranks(); ++copy) {
                        const bool told = copy != me_ && touched(copy);
                        at(values, copy) = told ? at(arrived, copy) : mine;
                        if (told) at(arrived, copy) += count;
                    }
                    mean_of_copies(values.data(), topology_, count, scratch.data(), mine);
                });
            });
    }

  private:
    Topology topology_;
    int me_ = 0;
    CopiedShards* all_ = nullptr;
    const Lanes* lanes_ = nullptr;
};

struct MeansOfRows final : Exchange {
    std::vector<std::int64_t> floats;  // (averager)

    void bind(const StepEnv& env, CopiedShards& all, const Lanes& lanes) {
        me_ = env.rank;
        all_ = &all;
        lanes_ = &lanes;
        floats.assign(static_cast<std::size_t>(env.topology.ranks()), 0);
        for (std::size_t k = 0; k < all.shards.size(); ++k) {
            const std::int64_t row_floats = all.floats(all.shards[k]);
            for (int averager = 0; averager < env.topology.ranks(); ++averager)
                at(floats, averager) += row_floats * lanes.rows[k].count_of(averager);
        }
    }
    [[nodiscard]] PartSize size(int) override { return {.payload = 4 * at(floats, me_), .control = 0}; }
    void pack(int, ByteWriter& to) override {
        for_means(me_, [&](const float* part, std::int64_t count) { to.put(part, count); });
    }
    [[nodiscard]] std::int64_t expected(int peer) override { return 4 * at(floats, peer); }
    void unpack(int peer, ByteReader& from) override {
        const float* next = from.view<float>(at(floats, peer));
        if (next == nullptr) return;
        for_means(peer, [&](float* part, std::int64_t count) {
            std::copy_n(next, count, part);
            next += count;
        });
    }
    void end() override {}

  private:
    /// Calls use(numbers, count) for all that `copy` makes the means of, as it is here.
    template <class Use>
    void for_means(int copy, Use use) const {
        for (std::size_t k = 0; k < all_->shards.size(); ++k)
            lanes_->rows[k].for_each_of(
                copy, [&](LocalRow row, auto) { detail::for_parts(*all_, all_->shards[k], row, use); });
    }

    int me_ = 0;
    CopiedShards* all_ = nullptr;
    const Lanes* lanes_ = nullptr;
};

namespace detail {

/// Calls use(from, to) for all pairs of two copies.
template <class Use>
void each_pair(const CostEnv& env, Use use) {
    for (int from = 0; from < env.topology.ranks(); ++from)
        for (int to = 0; to < env.topology.ranks(); ++to)
            if (to != from) use(from, to);
}

struct TellBody {
    using Tape = ToldRows;
    using View = shardwise::View<Lanes, TellFamily::Tapes, TellFamily::Sees>;

    static Exchange& begin(StepEnv& env, View& view) {
        ToldRows& tape = view.tape<ToldRows>();
        tape.bind(env, view.state<CopiedShards>(), view.lanes(), *view.state<steps::WorkMemory>().resource);
        return tape;
    }
    template <class Cost>
    static void memory(const CostEnv& env, const Cost& cost, int rank, MemoryTally& tally) {
        const int copies = env.topology.ranks();
        for (const auto& shard : cost.shards)
            tally.need(rounded_up(4 * shard.touched_by(rank)));
        for (const auto& shard : cost.shards) {
            typename Cost::Number rows = 0;
            for (int copy = 0; copy < copies; ++copy)
                rows += shard.touched_by(copy);
            RowsToMean::tally(rounded_up(rows), copies, tally);
        }
    }
    template <class Cost>
    static void shape(const CostEnv& env, Cost& cost, TrafficMatrixOf<typename Cost::Number>& round) {
        for (const auto& shard : cost.shards)
            each_pair(env, [&](int from, int to) {
                round.at(from, to) += {.payload = 4 * shard.touched_by(from), .control = 4, .messages = 0};
            });
        cost.meet_touched(env.topology.ranks());
    }
};

struct TakeBody {
    using View = shardwise::View<Lanes, TakeFamily::Tapes, TakeFamily::Sees>;

    static void run(StepEnv& env, View& view) {
        CopiedShards& all = view.state<CopiedShards>();
        std::vector<RowsToMean>& rows = view.lanes().rows;
        rows.resize(all.shards.size());
        for (std::size_t k = 0; k < rows.size(); ++k)
            rows[k].take_all(all.shards[k].store->rows, env.topology.ranks());
    }
    template <class Cost>
    static void shape(const CostEnv& env, Cost& cost) {
        cost.meet_all(env.topology.ranks());
    }
};

struct GatherBody {
    using Tape = RowsOfCopies;
    using View = shardwise::View<Lanes, GatherFamily::Tapes, GatherFamily::Sees>;

    static Exchange& begin(StepEnv& env, View& view) {
        RowsOfCopies& tape = view.tape<RowsOfCopies>();
        tape.bind(env, view.state<CopiedShards>(), view.lanes(), *view.state<steps::WorkMemory>().resource);
        return tape;
    }
    template <class Cost>
    static void memory(const CostEnv&, const Cost& cost, int, MemoryTally& tally) {
        std::int64_t widest = 0;
        for (const auto& shard : cost.shards)
            widest = std::max(widest, widest_part(shard.dim, cost.element_slots, cost.row_slots));
        tally.need(16 * widest);
    }
    template <class Cost>
    static void shape(const CostEnv& env, const Cost& cost, TrafficMatrixOf<typename Cost::Number>& round) {
        each_pair(env, [&](int from, int to) { round.at(from, to).payload += 4 * cost.gathered_floats(from, to); });
    }
};

struct SpreadBody {
    using Tape = MeansOfRows;
    using View = shardwise::View<Lanes, SpreadFamily::Tapes, SpreadFamily::Sees>;

    static Exchange& begin(StepEnv& env, View& view) {
        MeansOfRows& tape = view.tape<MeansOfRows>();
        tape.bind(env, view.state<CopiedShards>(), view.lanes());
        return tape;
    }
    template <class Cost>
    static void shape(const CostEnv& env, const Cost& cost, TrafficMatrixOf<typename Cost::Number>& round) {
        each_pair(env, [&](int from, int to) { round.at(from, to).payload += 4 * cost.spread_floats(from); });
    }
};

}  // namespace detail

SHARDWISE_INLINE const StepCode& step_code(Domain, TellFamily) {
    return code_from<Domain, detail::TellBody>();
}
SHARDWISE_INLINE const StepCode& step_code(Domain, TakeFamily) {
    return code_from<Domain, detail::TakeBody>();
}
SHARDWISE_INLINE const StepCode& step_code(Domain, GatherFamily) {
    return code_from<Domain, detail::GatherBody>();
}
SHARDWISE_INLINE const StepCode& step_code(Domain, SpreadFamily) {
    return code_from<Domain, detail::SpreadBody>();
}

}  // namespace shardwise::inline SHARDWISE_ABI::copies
