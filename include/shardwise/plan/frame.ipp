// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <stdexcept>
#include <string>

#include "shardwise/plan/frame.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE void* States::find(BranchPath branch, const StateKind& kind) const {
    for (;; branch.pop_back()) {
        for (const Bound& bound : all_)
            if (bound.kind == &kind && bound.branch == branch) return bound.state;
        if (branch.empty())
            throw std::logic_error{std::string{"a step sees state '"} + kind.name +
                                   "', and nobody bound it: bind it to the States of the frame"};
    }
}

SHARDWISE_INLINE std::vector<void*> detail::FrameParts::parts_of(const Program& program, const States& states) {
    std::vector<void*> parts;
    parts.reserve(program.parts);
    for (const Segment& segment : program.segments) {
        for (const std::vector<Instruction>* steps : {&segment.local, &segment.posts}) {
            for (const Instruction& step : *steps) {
                parts.push_back(lanes_at(step.branch));
                for (const TapeKind* kind : step.calls->tapes)
                    parts.push_back(tape_at(step.branch, kind));
                for (const StateKind* kind : step.calls->states)
                    parts.push_back(states.find(step.branch, *kind));
                for (const BranchPath& plan : step.plans)
                    parts.push_back(lanes_at(plan));
            }
        }
    }
    return parts;
}

}  // namespace shardwise::inline SHARDWISE_ABI
