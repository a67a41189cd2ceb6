// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "shardwise/plan/itinerary.hpp"

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// Which ranks' errors each rank has heard of: a bit each.
class HeardOf {
    template <class Words>
    auto of(Words& words, int rank) const {
        return words.data() + static_cast<std::size_t>(rank) * words_;
    }

  public:
    explicit HeardOf(int ranks) : ranks_{ranks}, words_{(static_cast<std::size_t>(ranks) + 63) / 64} { begin(); }
    void begin() {
        heard_.assign(static_cast<std::size_t>(ranks_) * words_, 0);
        for (int rank = 0; rank < ranks_; ++rank)
            of(heard_, rank)[static_cast<std::size_t>(rank) / 64] |= std::uint64_t{1} << rank % 64;
    }
    void pass_on(const Segment& round, const Topology& topology) {
        const std::vector<std::uint64_t> before = heard_;
        for (const Instruction& post : round.posts) {
            const Members group = post.group(topology);
            for (int me = 0; me < ranks_; ++me)
                for (int number = 0; number < group.size; ++number) {
                    const std::uint64_t* from = of(before, group.member(me, number));
                    for (std::size_t w = 0; w < words_; ++w)
                        of(heard_, me)[w] |= from[w];
                }
        }
    }
    [[nodiscard]] bool everywhere() const {
        std::uint64_t bits = 0;
        for (const std::uint64_t word : heard_)
            bits += static_cast<std::uint64_t>(__builtin_popcountll(word));
        return bits == static_cast<std::uint64_t>(ranks_) * static_cast<std::uint64_t>(ranks_);
    }

  private:
    int ranks_;
    std::size_t words_;
    std::vector<std::uint64_t> heard_;  // (rank, whose error)
};

}  // namespace detail

SHARDWISE_INLINE std::vector<Agreement> agreements(const Program& program, const Topology& topology) {
    std::vector<Agreement> all(program.segments.size());
    detail::HeardOf heard{topology.ranks()};
    bool open = false;
    for (std::size_t s = 0; s < program.segments.size(); ++s) {
        if (s == program.forward) {
            heard.begin();
            open = false;
        }
        const Segment& segment = program.segments[s];
        if (segment.posts.empty()) continue;
        all[s].opens = !open;
        const bool world = std::any_of(segment.posts.begin(), segment.posts.end(), [&](const Instruction& post) {
            return post.group(topology).size == topology.ranks();
        });
        if (!world) heard.pass_on(segment, topology);
        all[s].agrees = world || heard.everywhere();
        open = !all[s].agrees;
        if (all[s].agrees) heard.begin();
    }
    return all;
}

SHARDWISE_INLINE Itinerary::Itinerary(const Program& program, const Topology& topology, int rank)
    : program_{&program}, topology_{topology}, rank_{rank}, stages_(program.segments.size()) {
    const std::vector<Agreement> agreed = agreements(program, topology);
    std::size_t posts = 0;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
        const Segment& segment = program.segments[s];
        Stage& stage = stages_[s];
        stage.agreement = agreed[s];
        const auto place = [&](const std::vector<Instruction>& steps, std::vector<PlacedStep>& to) {
            for (const Instruction& step : steps)
                to.push_back({.step = &step, .group = step.group(topology), .under = step.under(topology)});
        };
        place(segment.local, stage.local);
        place(segment.posts, stage.posts);
        for (PlacedStep& step : stage.posts)
            step.post = posts++;
        for (int peer = 0; peer < topology.ranks(); ++peer)
            if (segment.exchanges(topology, rank, peer)) stage.peers.push_back(peer);
    }
}

}  // namespace shardwise::inline SHARDWISE_ABI
