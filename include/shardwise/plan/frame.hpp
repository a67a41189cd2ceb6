// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/plan/view.hpp"

/// \file
/// The memory of one flight through a plan: one set of lanes a branch, and the tape of every step that keeps one.

namespace shardwise::inline SHARDWISE_ABI {

/// Lanes and tapes, made once and used again for flight after flight. `Lanes` is that of the program's domain.
template <class Lanes>
class Frame {
  public:
    explicit Frame(const Program& program) {
        parts_.reserve(program.parts);
        for (const Segment& segment : program.segments) {
            for (const std::vector<Instruction>* steps : {&segment.local, &segment.posts}) {
                for (const Instruction& step : *steps) {
                    Node& node = at(step.branch);
                    parts_.push_back(&node.lanes);
                    for (const TapeKind* kind : step.calls->tapes)
                        parts_.push_back(node.tape(kind));
                }
            }
        }
    }

    /// The lanes of the trunk, or of a branch.
    [[nodiscard]] Lanes& lanes(const BranchPath& branch = {}) { return at(branch).lanes; }
    /// What the views of all steps are made of, in the order of the program.
    [[nodiscard]] void* const* parts() const noexcept { return parts_.data(); }

  private:
    struct Node {
        BranchPath branch;
        Lanes lanes;
        std::vector<std::pair<const TapeKind*, std::shared_ptr<void>>> tapes;

        void* tape(const TapeKind* kind) {
            for (const auto& [other, tape] : tapes)
                if (other == kind) return tape.get();
            return tapes.emplace_back(kind, kind->make()).second.get();
        }
    };
    Node& at(const BranchPath& branch) {
        for (const auto& node : nodes_)
            if (node->branch == branch) return *node;
        nodes_.push_back(std::make_unique<Node>());
        nodes_.back()->branch = branch;
        return *nodes_.back();
    }

    std::vector<std::unique_ptr<Node>> nodes_;
    std::vector<void*> parts_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
