// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "shardwise/core/at.hpp"
#include "shardwise/embedding/steps/exchange_ids.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

/// Also the exchange of one flight.
struct IdsTape final : Exchange {
    std::vector<IdBlock> sent;                       // (block)
    std::vector<IdBlock> arrived;                    // by source, then my blocks
    std::vector<std::int64_t> samples;               // (source)
    std::vector<std::vector<std::int64_t>> vectors;  // (source, block), where relays are told

    void bind(const StepEnv& env, const Placement& placement, Lanes& lanes, bool relays, bool told) {
        rank_ = env.rank;
        ranks_ = env.topology.ranks();
        relay_group_ = env.under;
        relays_ = relays;
        told_ = told;
        placement_ = &placement;
        lanes_ = &lanes;
        sent = lanes.ids;
        arrived.clear();
        samples.assign(static_cast<std::size_t>(ranks_), 0);
        at(samples, rank_) = lanes.batch.samples();
        if (!told_) return;
        vectors.resize(samples.size());
        auto& mine = at(vectors, rank_);
        mine.clear();
        for (const IdBlock& block : sent)
            mine.push_back(block.ids);
    }
    [[nodiscard]] PartSize size(int peer) override {
        PartSize part{.payload = 0, .control = 8};
        for_told(rank_, peer, [&](const BlockPlace&) { part.control += 8; });
        for_blocks(peer, [&](const IdBlock& block) {
            part.control += 8 + 4 * block.head.n * ((sends_lengths(block) ? 1 : 0) + (sends_samples(block) ? 1 : 0));
            part.payload += (block.weights != nullptr ? 8 : 4) * block.ids;
        });
        return part;
    }
    void pack(int peer, ByteWriter& to) override {
        to.put(static_cast<std::uint32_t>(at(samples, rank_)));
        to.put(static_cast<std::uint32_t>(lanes_->batch.weighted() ? 1 : 0));
        for_blocks(peer, [&](const IdBlock& block) {
            to.put(static_cast<std::uint32_t>(block.ids));
            to.put(static_cast<std::uint32_t>(block.head.n) << 1U | (sends_lengths(block) ? 1U : 0U));
        });
        for_told(rank_, peer, [&](const BlockPlace& place) { to.put(at(sent, placement_->block_index(place)).ids); });
        for_blocks(peer, [&](const IdBlock& block) {
            if (sends_lengths(block)) to.put(block.lengths, block.head.n);
            if (sends_samples(block)) to.put(block.samples, block.head.n);
            to.put(block.rows, block.ids);
            if (block.weights != nullptr) to.put(block.weights, block.ids);
        });
    }
    void unpack(int peer, ByteReader& from) override {
        const auto count_of_samples = from.get<std::uint32_t>();
        at(samples, peer) = count_of_samples;
        const bool weighted = from.get<std::uint32_t>() != 0;
        const std::size_t first = arrived.size();
        for (const BlockPlace& place : placement_->owned_by(rank_)) {
            const auto ids = from.get<std::uint32_t>();
            const auto bags = from.get<std::uint32_t>();
            IdBlock block{.head = {.source = peer,
                                   .owner = rank_,
                                   .feature = place.feature,
                                   .shard = place.shard,
                                   .dim = placement_->shard(place).columns.count,
                                   .n = bags >> 1U},
                          .ids = ids};
            static constexpr std::int32_t some = 0;  // stands for "there are some" until they are read
            if ((bags & 1U) != 0) block.lengths = &some;
            if (block.head.n != count_of_samples) block.samples = &some;
            arrived.push_back(block);
        }
        if (told_) {
            auto& theirs = at(vectors, peer);
            theirs.assign(static_cast<std::size_t>(placement_->blocks), 0);
            for (std::size_t i = first; i < arrived.size(); ++i)
                at(theirs, index(arrived[i].head)) = arrived[i].ids;
            for_told(peer, rank_, [&](const BlockPlace& place) {
                at(theirs, placement_->block_index(place)) = from.get<std::int64_t>();
            });
        }
        for (std::size_t i = first; i < arrived.size() && !from.overrun(); ++i) {
            IdBlock& block = arrived[i];
            if (sends_lengths(block)) block.lengths = from.view<std::int32_t>(block.head.n);
            block.samples = sends_samples(block) ? from.view<std::int32_t>(block.head.n) : nullptr;
            block.rows = from.view<LocalRow>(block.ids);
            if (weighted) block.weights = from.view<float>(block.ids);
        }
    }
    void end() override {
        const auto after = std::find_if(arrived.begin(), arrived.end(),
                                        [&](const IdBlock& block) { return block.head.source > rank_; });
        const auto position = after - arrived.begin();
        const auto count = std::ssize(arrived);
        for_blocks(rank_, [&](const IdBlock& block) { arrived.push_back(block); });
        std::rotate(arrived.begin() + position, arrived.begin() + count, arrived.end());
        lanes_->ids = arrived;
        if (relays_) find_relayed();
    }

    /// Calls use(BlockPlace) for the blocks whose vectors `relay` passes on.
    template <class Use>
    static void for_relayed(const Placement& placement, const Members& group, int relay, Use use) {
        for (int f = 0; f < static_cast<int>(placement.features.size()); ++f)
            for (int s = 0; s < static_cast<int>(placement.table_of(f).shards.size()); ++s) {
                const BlockPlace place{.feature = f, .shard = s};
                if (group.together(relay, placement.owner(relay, place))) use(place);
            }
    }
    /// Calls use(BlockPlace) for the blocks whose sizes `source` tells `relay`.
    template <class Use>
    static void for_told(const Placement& placement, const Members& group, int source, int relay, Use use) {
        if (group.toward(relay, source) != relay) return;
        for_relayed(placement, group, relay, [&](const BlockPlace& place) {
            if (placement.owner(relay, place) != relay) use(place);
        });
    }

  private:
    [[nodiscard]] int index(const Head& head) const { return placement_->block_index(head.feature, head.shard); }
    [[nodiscard]] static bool sends_lengths(const IdBlock& block) { return block.lengths != nullptr && block.ids != 0; }
    /// Bags of several features go by sample.
    [[nodiscard]] bool sends_samples(const IdBlock& block) const {
        return block.samples != nullptr && !at(placement_->features, block.head.feature).alone;
    }
    template <class Use>
    void for_blocks(int owner, Use use) {
        for (const BlockPlace& place : placement_->owned_by(owner))
            use(at(sent, placement_->block_index(place)));
    }
    template <class Use>
    void for_told(int source, int relay, Use use) const {
        if (told_) for_told(*placement_, relay_group_, source, relay, use);
    }
    void find_relayed() {
        auto& relayed = lanes_->relayed;
        relayed.clear();
        for (int source = 0; source < ranks_; ++source) {
            if (relay_group_.toward(rank_, source) != rank_) continue;
            for_relayed(*placement_, relay_group_, rank_, [&](const BlockPlace& place) {
                Head& head = relayed.emplace_back(Head{.source = source,
                                                       .owner = placement_->owner(rank_, place),
                                                       .feature = place.feature,
                                                       .shard = place.shard,
                                                       .dim = placement_->shard(place).columns.count,
                                                       .n = at(samples, source)});
                if (told_) head.n = at(at(vectors, source), index(head));
            });
        }
    }

    int rank_ = 0;
    int ranks_ = 0;
    Members relay_group_;
    bool relays_ = false;
    bool told_ = false;
    const Placement* placement_ = nullptr;
    Lanes* lanes_ = nullptr;
};

namespace detail {

template <bool Relays, bool Told>
struct IdsBody {
    using Tape = IdsTape;
    using View =
        shardwise::View<Lanes, typename IdsFamily<Relays, Told>::Tapes, typename IdsFamily<Relays, Told>::Sees>;

    static Exchange& begin(StepEnv& env, View& view) {
        auto& exchange = view.template tape<IdsTape>();
        exchange.bind(env, view.template state<Placement>(), view.lanes(), Relays, Told);
        return exchange;
    }
    template <class Cost>
    static void shape(const CostEnv& env, Cost& cost, TrafficMatrixOf<typename Cost::Number>& round) {
        const Placement& placement = *cost.placement;
        for (int from = 0; from < cost.ranks(); ++from) {
            const bool weighted = cost.batch(from).weighted();
            cost.for_sources(from, [&](int to) {
                if (from == to) return;
                auto& cell = round.at(from, to);
                cell.control += 4 + 4;  // samples, flags
                if (Told)
                    IdsTape::for_told(placement, env.under, from, to, [&](const BlockPlace&) { cell.control += 8; });
                for (const BlockPlace& place : placement.owned_by(to)) {
                    const auto& count = cost.count(from, static_cast<std::size_t>(placement.block_index(place)));
                    cell += count.told(weighted, at(placement.features, place.feature).alone, cost.samples(from));
                }
            });
        }
    }
};

}  // namespace detail

SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, IdsFamily<false, false>) {
    return code_from<EmbeddingDomain, detail::IdsBody<false, false>>();
}
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, IdsFamily<true, false>) {
    return code_from<EmbeddingDomain, detail::IdsBody<true, false>>();
}
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, IdsFamily<true, true>) {
    return code_from<EmbeddingDomain, detail::IdsBody<true, true>>();
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
