// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>

#include "shardwise/core/text.hpp"
#include "shardwise/plan/describe.hpp"

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

SHARDWISE_INLINE std::string describe_traffic(const TrafficMatrix& matrix) {
    const Traffic sum = matrix.total();
    const auto tier = [](const TierTraffic& t) { return concat({t.payload, " + ", t.control}); };
    return concat({"host ", tier(sum.host), " B, cross_host ", tier(sum.cross_host), " B"});
}

SHARDWISE_INLINE std::string branch_prefix(const Instruction& step, const std::vector<std::string>& branches) {
    std::string text;
    for (std::size_t depth = 0; depth < step.branch.size(); ++depth) {
        const std::size_t index = step.branch[depth];
        text += concat({"[", (depth == 0 && index < branches.size() ? branches[index] : std::to_string(index)), "] "});
    }
    return text;
}

/// Whether the plan has an adjoint.
SHARDWISE_INLINE bool goes_back(const Program& program) {
    return std::any_of(program.segments.begin() + static_cast<std::ptrdiff_t>(program.forward), program.segments.end(),
                       [](const Segment& segment) { return !segment.local.empty() || !segment.posts.empty(); });
}

}  // namespace detail

SHARDWISE_INLINE std::string describe(const Program& program, const std::vector<std::string>& branches,
                                      const std::vector<SegmentCost>& costs) {
    const bool both = detail::goes_back(program);
    std::string text = both ? "forward\n" : "";
    std::size_t next_cost = 0;
    for (std::size_t s = 0; s < program.segments.size(); ++s) {
        if (both && s == program.forward) text += "backward (derived)\n";
        const Segment& segment = program.segments[s];
        if (segment.local.empty() && segment.posts.empty()) continue;
        text += concat({"  segment ", s, "\n"});
        for (const Instruction& step : segment.local)
            text += concat({"    ", detail::branch_prefix(step, branches), step.name, "\n"});
        const SegmentCost* cost = nullptr;
        if (next_cost < costs.size() && costs[next_cost].segment == s) cost = &costs[next_cost++];
        for (std::size_t i = 0; i < segment.posts.size(); ++i) {
            text += concat({"    ", detail::branch_prefix(segment.posts[i], branches), segment.posts[i].name});
            if (cost != nullptr) text += "  ->  " + detail::describe_traffic(cost->steps[i]);
            text += "\n";
        }
        if (cost != nullptr) {
            const Traffic sum = cost->traffic.total();
            text += concat({"    = one round: ", detail::describe_traffic(cost->traffic), ", ",
                            sum.host.messages + sum.cross_host.messages, " messages\n"});
        }
    }
    return text;
}

namespace detail {

/// Mermaid reads labels as HTML.
SHARDWISE_INLINE std::string escape_label(const std::string& text) {
    std::string escaped;
    for (const char c : text) {
        if (c == '<') {
            escaped += "&lt;";
        } else if (c == '>') {
            escaped += "&gt;";
        } else {
            escaped += c;
        }
    }
    return escaped;
}

}  // namespace detail

SHARDWISE_INLINE std::string describe_mermaid(const Program& program, const std::vector<std::string>& branches) {
    std::string text = "flowchart TD\n";
    const auto node = [](std::size_t s) { return "s" + std::to_string(s); };
    const bool both = detail::goes_back(program);
    const std::size_t end = both ? program.segments.size() : program.forward;
    for (std::size_t s = 0; s < end; ++s) {
        const Segment& segment = program.segments[s];
        text += concat({"    ", node(s), "[\"",
                        (!both                 ? "segment "
                         : s < program.forward ? "forward "
                                               : "backward "),
                        s});
        for (const Instruction& step : segment.local)
            text += "<br/>" + detail::escape_label(detail::branch_prefix(step, branches) + step.name);
        text += "\"]\n";
        if (s + 1 == end) break;
        std::string posts;
        for (const Instruction& step : segment.posts) {
            if (!posts.empty()) posts += ", ";
            posts += detail::escape_label(detail::branch_prefix(step, branches) + step.name);
        }
        text += concat({"    ", node(s), " -->", (posts.empty() ? "" : "|\"" + posts + "\"|"), " ", node(s + 1), "\n"});
    }
    return text;
}

}  // namespace shardwise::inline SHARDWISE_ABI
