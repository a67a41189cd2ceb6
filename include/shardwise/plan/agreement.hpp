// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// When all ranks know of each other's errors: an error word rides in every message and is or-ed on, so this follows
/// from who exchanges with whom.

namespace shardwise::inline SHARDWISE_ABI {

/// What a segment's flush does for errors.
struct Agreement {
    bool opens = false;   ///< it is the first flush since errors were last agreed on
    bool agrees = false;  ///< once it is complete, every rank knows every error noted before the one that opens
};

namespace detail {

/// Which ranks' errors each rank has heard of.
class Rumour {
  public:
    explicit Rumour(int ranks) : ranks_{static_cast<std::size_t>(ranks)} { begin(); }
    void begin() {
        heard_.assign(ranks_ * ranks_, false);
        for (std::size_t rank = 0; rank < ranks_; ++rank)
            heard_[rank * ranks_ + rank] = true;
    }
    void pass_on(const Segment& flush, const Topology& topology) {
        const bool world = std::any_of(flush.posts.begin(), flush.posts.end(),
                                       [](const Instruction& post) { return post.calls->exchange->world; });
        if (world) {
            heard_.assign(heard_.size(), true);
            return;
        }
        const std::vector<bool> before = heard_;
        for (std::size_t me = 0; me < ranks_; ++me)
            for (std::size_t peer = 0; peer < ranks_; ++peer)
                if (Program::exchanges(flush, topology, static_cast<int>(me), static_cast<int>(peer)))
                    for (std::size_t rank = 0; rank < ranks_; ++rank)
                        if (before[peer * ranks_ + rank]) heard_[me * ranks_ + rank] = true;
    }
    [[nodiscard]] bool everywhere() const { return std::find(heard_.begin(), heard_.end(), false) == heard_.end(); }

  private:
    std::size_t ranks_;
    std::vector<bool> heard_;  // (rank, whose error)
};

}  // namespace detail

/// What each segment of a program does for errors on this topology. Pure: the same on all ranks. The plan and its
/// adjoint each begin anew. Costs ranks^3 steps where no exchange crosses the world.
[[nodiscard]] inline std::vector<Agreement> agreements(const Program& program, const Topology& topology) {
    std::vector<Agreement> all(program.segments.size());
    detail::Rumour rumour{topology.ranks()};
    bool open = false;
    for (std::size_t s = 0; s < program.segments.size(); ++s) {
        if (s == program.forward) {
            rumour.begin();
            open = false;
        }
        const Segment& segment = program.segments[s];
        if (segment.posts.empty()) continue;
        all[s].opens = !open;
        rumour.pass_on(segment, topology);
        all[s].agrees = rumour.everywhere();
        open = !all[s].agrees;
        if (all[s].agrees) rumour.begin();
    }
    return all;
}

}  // namespace shardwise::inline SHARDWISE_ABI
