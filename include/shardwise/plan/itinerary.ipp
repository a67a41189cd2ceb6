// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "shardwise/plan/itinerary.hpp"

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// Which ranks' errors each rank of a group has heard of: of its own group, and of any other, which are all alike.
class HeardOf {
    using Bits = std::vector<std::uint64_t>;  // (rank, whose error)

    template <class Words>
    auto of(Words& words, int rank) const {
        return words.data() + static_cast<std::size_t>(rank) * words_;
    }

  public:
    explicit HeardOf(const Topology& topology)
        : topology_{topology}, ranks_{topology.ranks()}, words_{(static_cast<std::size_t>(ranks_) + 63) / 64} {
        begin();
    }
    void begin() {
        own_.assign(static_cast<std::size_t>(ranks_) * words_, 0);
        others_ = own_;
        for (int rank = 0; rank < ranks_; ++rank)
            of(own_, rank)[static_cast<std::size_t>(rank) / 64] |= std::uint64_t{1} << rank % 64;
    }
    void pass_on(const Segment& round, Witnesses witnesses) {
        Bits own = own_;
        Bits others = others_;
        add_from_peers(round, own, own_);
        add_from_peers(round, others, others_);
        if (witnesses == Witnesses::none) return;
        if (witnesses == Witnesses::peers) {  // what peers tell me, their copies do, too
            own = own_;
            others = others_;
        }
        add(own_, others);
        add(others_, own);
    }
    [[nodiscard]] bool everywhere(bool several_groups) const {
        return full(own_) && (!several_groups || full(others_));
    }

  private:
    void add_from_peers(const Segment& round, const Bits& before, Bits& after) const {
        for (const Instruction& post : round.posts) {
            const Members group = post.group(topology_);
            for (int me = 0; me < ranks_; ++me)
                for (int number = 0; number < group.size; ++number) {
                    const std::uint64_t* from = of(before, group.member(me, number));
                    for (std::size_t w = 0; w < words_; ++w)
                        of(after, me)[w] |= from[w];
                }
        }
    }
    static void add(Bits& to, const Bits& more) {
        for (std::size_t w = 0; w < to.size(); ++w)
            to[w] |= more[w];
    }
    [[nodiscard]] bool full(const Bits& words) const {
        std::uint64_t bits = 0;
        for (const std::uint64_t word : words)
            bits += static_cast<std::uint64_t>(__builtin_popcountll(word));
        return bits == static_cast<std::uint64_t>(ranks_) * static_cast<std::uint64_t>(ranks_);
    }

    Topology topology_;
    int ranks_;
    std::size_t words_;
    Bits own_;
    Bits others_;
};

/// Whether a round of that segment is of all ranks.
inline bool crosses_world(const Segment& round, const Topology& topology) {
    return std::any_of(round.posts.begin(), round.posts.end(),
                       [&](const Instruction& post) { return post.group(topology).size == topology.ranks(); });
}

/// The rounds of one group.
inline void agree_in_group(const Program& program, const Topology& topology, std::vector<Agreement>& all) {
    HeardOf heard{topology};
    bool open = false;
    for (std::size_t s = 0; s < program.segments.size(); ++s) {
        if (s == program.forward) {
            heard.begin();
            open = false;
        }
        const Segment& segment = program.segments[s];
        if (segment.posts.empty()) continue;
        all[s].opens = !open;
        const bool world = crosses_world(segment, topology);
        if (!world) heard.pass_on(segment, Witnesses::none);
        all[s].agrees = world || heard.everywhere(false);
        open = !all[s].agrees;
        if (all[s].agrees) heard.begin();
    }
}

/// The rounds [first, last] among several groups: the cheapest witnesses with which all know by the end of the last.
inline void agree_among_groups(const Program& program, const Topology& topology, std::size_t first, std::size_t last,
                               std::vector<Agreement>& all) {
    struct Candidate {
        int messages;
        std::size_t segment;
        Witnesses witnesses;
    };
    std::vector<Candidate> candidates;  // by messages a rank and other group, then in the order of rounds
    for (std::size_t s = first; s <= last; ++s) {
        const Segment& round = program.segments[s];
        if (round.posts.empty()) continue;
        int messages = 1;
        for (int peer = 1; peer < topology.ranks(); ++peer)
            messages += round.exchanges(topology, 0, peer) ? 1 : 0;
        candidates.push_back({1, s, Witnesses::copies});
        candidates.push_back({messages, s, Witnesses::peers});
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.messages < b.messages; });
    for (const Candidate& candidate : candidates) {
        HeardOf heard{topology};
        for (std::size_t s = first; s <= last; ++s) {
            if (program.segments[s].posts.empty()) continue;
            heard.pass_on(program.segments[s], s == candidate.segment ? candidate.witnesses : Witnesses::none);
            if (!heard.everywhere(true)) continue;
            all[first].opens = true;
            all[candidate.segment].witnesses = candidate.witnesses;
            all[s].agrees = true;
            return;
        }
    }
}

}  // namespace detail

SHARDWISE_INLINE std::vector<Agreement> agreements(const Program& program, const Topology& topology, int groups) {
    std::vector<Agreement> alone(program.segments.size());
    detail::agree_in_group(program, topology, alone);
    if (groups == 1) return alone;
    std::vector<Agreement> all(program.segments.size());
    const auto among = [&](std::size_t begin, std::size_t end, bool at_once) {
        while (begin < end && program.segments[begin].posts.empty())
            ++begin;
        std::size_t last = begin;
        for (std::size_t s = begin; s < end; ++s)
            if (alone[s].agrees && (!at_once || !alone[last].agrees)) last = s;
        if (begin < end) detail::agree_among_groups(program, topology, begin, last, all);
    };
    among(0, program.forward, false);
    among(program.forward, program.segments.size(), true);
    return all;
}

SHARDWISE_INLINE std::vector<int> witnesses_of(const Segment& round, Witnesses witnesses, const Topology& topology,
                                               const ReplicaGroups& groups, int rank) {
    std::vector<int> all;
    if (witnesses == Witnesses::none) return all;
    const int index = groups.index_of(rank);
    for (int other = 0; other < groups.count(); ++other) {
        if (other == groups.group_of(rank)) continue;
        for (int peer = 0; peer < topology.ranks(); ++peer)
            if (peer == index || (witnesses == Witnesses::peers && round.exchanges(topology, index, peer)))
                all.push_back(groups.rank_of(other, peer));
    }
    return all;
}

SHARDWISE_INLINE Itinerary::Itinerary(const Program& program, const Topology& topology, const ReplicaGroups& groups,
                                      int rank)
    : program_{&program},
      topology_{topology},
      groups_{groups},
      in_world_{rank},
      rank_{groups.index_of(rank)},
      stages_(program.segments.size()) {
    SHARDWISE_ASSERT(topology.ranks() == groups.group.size);
    const std::vector<Agreement> agreed = agreements(program, topology, groups.count());
    std::size_t posts = 0;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
        const Segment& segment = program.segments[s];
        Stage& stage = stages_[s];
        stage.agreement = agreed[s];
        const auto place = [&](const std::vector<Instruction>& steps, std::vector<PlacedStep>& to) {
            for (const Instruction& step : steps) {
                const auto& states = step.calls->states;
                const bool reads_rows =
                    std::any_of(states.begin(), states.end(), [](const StateKind* state) { return state->looked_up; });
                to.push_back({.step = &step,
                              .group = step.group(topology),
                              .under = step.under(topology),
                              .post = 0,
                              .looks_up = reads_rows && s < program.forward});
            }
        };
        place(segment.local, stage.local);
        place(segment.posts, stage.posts);
        stage.posts_look_up =
            std::any_of(stage.posts.begin(), stage.posts.end(), [](const PlacedStep& step) { return step.looks_up; });
        for (PlacedStep& step : stage.posts)
            step.post = posts++;
        for (int peer = 0; peer < topology.ranks(); ++peer)
            if (segment.exchanges(topology, rank_, peer)) stage.to.push_back(peer);
        stage.from = stage.to;
        stage.witnesses = witnesses_of(segment, stage.agreement.witnesses, topology, groups, rank);
    }
}

namespace detail {

/// The stages that end with a round. \throws std::logic_error where there are not as many as asked for
SHARDWISE_INLINE std::vector<Stage*> rounds_of(std::vector<Stage>& stages, std::size_t count) {
    std::vector<Stage*> rounds;
    for (Stage& stage : stages)
        if (!stage.posts.empty()) rounds.push_back(&stage);
    if (rounds.size() != count)
        throw std::logic_error{"a flight has two halves where its rounds are a request and an answer"};
    return rounds;
}

}  // namespace detail

SHARDWISE_INLINE Itinerary Itinerary::alone() const {
    Itinerary way = *this;
    for (Stage& stage : way.stages_) {
        stage.agreement = {};
        stage.witnesses.clear();
    }
    return way;
}

SHARDWISE_INLINE bool Itinerary::agrees() const noexcept {
    return std::any_of(stages_.begin(), stages_.end(), [](const Stage& stage) { return stage.agreement.agrees; });
}

SHARDWISE_INLINE Itinerary Itinerary::asking() const {
    Itinerary half = alone();
    const std::vector<Stage*> rounds = detail::rounds_of(half.stages_, 2);
    rounds[0]->from.clear();
    rounds[1]->to.clear();
    return half;
}

SHARDWISE_INLINE Itinerary Itinerary::answering(const std::vector<int>& peers) const {
    Itinerary half = alone();
    const std::vector<Stage*> rounds = detail::rounds_of(half.stages_, 2);
    const auto others = [&](int rank) { return std::find(peers.begin(), peers.end(), rank) == peers.end(); };
    rounds[0]->to.clear();
    std::erase_if(rounds[0]->from, others);
    std::erase_if(rounds[1]->to, others);
    rounds[1]->from.clear();
    half.stages_.resize(static_cast<std::size_t>(rounds[1] - half.stages_.data()) + 1);
    return half;
}

}  // namespace shardwise::inline SHARDWISE_ABI
