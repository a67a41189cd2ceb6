// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <limits>
#include <utility>

#include "shardwise/plan/program.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE bool Segment::exchanges(const Topology& topology, int a, int b) const {
    return a != b && std::any_of(posts.begin(), posts.end(),
                                 [&](const Instruction& post) { return post.group(topology).together(a, b); });
}

SHARDWISE_INLINE std::size_t Program::posts() const noexcept {
    std::size_t count = 0;
    for (const Segment& segment : segments)
        count += segment.posts.size();
    return count;
}

SHARDWISE_INLINE std::int64_t Program::sum_of(const BranchPath& branch, std::span<const std::int64_t> by_post) const {
    SHARDWISE_ASSERT(by_post.size() == posts());
    std::int64_t sum = 0;
    const std::int64_t* number = by_post.data();
    for (const Segment& segment : segments)
        for (const Instruction& post : segment.posts) {
            const auto common = std::mismatch(branch.begin(), branch.end(), post.branch.begin(), post.branch.end());
            sum += common.first == branch.end() ? *number : 0;
            ++number;
        }
    return sum;
}

namespace detail {

/// Flattens one line, forward or backward.
class Flattener {
  public:
    /// \param updates  of the state that steps read come from other flights
    Flattener(bool backward, bool updates) : backward_{backward}, updates_{updates} {}

    /// \param before  how many segments of the program are closed
    std::vector<Segment> flatten(const BranchPath& path, Line line, std::size_t before) const {
        std::vector<Segment> segments(1);
        std::size_t plans = 0;
        if (backward_)
            for (const LineEntry& entry : line)
                plans += entry.plans.size();
        for (const LineEntry& entry : line) {
            if (entry.merge == nullptr) {
                append(segments, before, {.name = entry.step->name(), .branch = path, .calls = entry.step});
                continue;
            }
            std::vector<BranchPath> inside;
            if (backward_) plans -= entry.plans.size();
            for (std::size_t i = 0; i < entry.plans.size(); ++i) {
                inside.push_back(path);
                inside.back().push_back(plans + i);
            }
            if (!backward_) plans += entry.plans.size();
            append(segments, before,
                   {.name = entry.step->name(), .branch = path, .plans = inside, .calls = entry.step});
            zip(segments, inside, entry.plans, before);
            append(segments, before,
                   {.name = entry.merge->name(), .branch = path, .plans = inside, .calls = entry.merge});
        }
        return segments;
    }

  private:
    void append(std::vector<Segment>& segments, std::size_t before, Instruction step) const {
        step.code = &step.calls->code();
        if (updates_ && step.calls->reads_state && before + segments.size() == 1) segments.emplace_back();
        if (step.calls->exchanges) {
            segments.back().posts.push_back(std::move(step));
            segments.emplace_back();
        } else {
            segments.back().local.push_back(std::move(step));
        }
    }
    /// Appends the i-th segments of all plans inside as one segment each.
    void zip(std::vector<Segment>& segments, const std::vector<BranchPath>& paths, std::span<const Line> lines,
             std::size_t before) const {
        std::vector<std::vector<Segment>> plans;
        std::size_t longest = 1;
        for (std::size_t i = 0; i < lines.size(); ++i) {
            plans.push_back(flatten(paths[i], lines[i], before + segments.size() - 1));
            longest = std::max(longest, plans.back().size());
        }
        for (std::size_t i = 0; i < longest; ++i) {
            if (i != 0) segments.emplace_back();
            for (std::vector<Segment>& plan : plans) {
                if (i >= plan.size()) continue;
                std::move(plan[i].local.begin(), plan[i].local.end(), std::back_inserter(segments.back().local));
                std::move(plan[i].posts.begin(), plan[i].posts.end(), std::back_inserter(segments.back().posts));
            }
        }
    }

    bool backward_;
    bool updates_;
};

}  // namespace detail

SHARDWISE_INLINE Program make_program(Line plan, Line adjoint,
                                      const std::function<std::string(const Instruction&)>& rename) {
    Program program;
    program.segments = detail::Flattener{false, !adjoint.empty()}.flatten({}, plan, 0);
    program.forward = program.segments.size();
    if (!adjoint.empty()) {
        std::vector<Segment> backward = detail::Flattener{true, true}.flatten({}, adjoint, 0);
        std::move(backward.begin(), backward.end(), std::back_inserter(program.segments));
    }
    SHARDWISE_ASSERT(program.segments.size() <= std::numeric_limits<decltype(Envelope::segment)>::max());
    for (Segment& segment : program.segments) {
        for (std::vector<Instruction>* steps : {&segment.local, &segment.posts}) {
            for (Instruction& step : *steps) {
                if (rename) step.name = rename(step);
                step.first_part = program.parts;
                program.parts += step.parts();
                program.digest.add(step.name);
            }
        }
        program.digest.add(static_cast<std::int64_t>(segment.posts.size()));
    }
    return program;
}

}  // namespace shardwise::inline SHARDWISE_ABI
