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
/// The memory of one flight through a plan: lanes for it and each plan inside it, and the tape of every step that keeps
/// one. And the states that all flights share.

namespace shardwise::inline SHARDWISE_ABI {

/// The states that steps see, by type and by the plan in which they stand. A plan inside sees what was bound for the
/// plans around it, unless it has its own. Refers to objects of its owner.
class States {
  public:
    template <class T>
    void bind(const BranchPath& branch, T& state) {
        all_.push_back(
            {branch, &detail::state_kind<std::remove_const_t<T>>, const_cast<void*>(static_cast<const void*>(&state))});
    }
    /// \throws std::logic_error where nobody bound it
    [[nodiscard]] void* find(BranchPath branch, const StateKind& kind) const;

  private:
    struct Bound {
        BranchPath branch;
        const StateKind* kind;
        void* state;
    };
    std::vector<Bound> all_;
};

namespace detail {

/// What the views of a program's steps are made of.
class FrameParts {
  public:
    virtual ~FrameParts() = default;
    [[nodiscard]] std::vector<void*> parts_of(const Program& program, const States& states);

  private:
    virtual void* lanes_at(const BranchPath& branch) = 0;
    virtual void* tape_at(const BranchPath& branch, const TapeKind* kind) = 0;
};

}  // namespace detail

/// Lanes and tapes, made once and used again for flight after flight. `Lanes` is that of the program's domain.
template <class Lanes>
class Frame final : private detail::FrameParts {
  public:
    explicit Frame(const Program& program, const States& states = {}) { parts_ = parts_of(program, states); }

    /// The lanes of the plan, or of one inside it.
    [[nodiscard]] Lanes& lanes(const BranchPath& branch = {}) { return at(branch).lanes; }
    /// What the views of all steps are made of, in the order of the program.
    [[nodiscard]] void* const* parts() const noexcept { return parts_.data(); }

  private:
    struct Node {
        BranchPath branch;
        Lanes lanes;
        std::vector<std::pair<const TapeKind*, std::shared_ptr<void>>> tapes;
    };
    Node& at(const BranchPath& branch) {
        for (const auto& node : nodes_)
            if (node->branch == branch) return *node;
        nodes_.push_back(std::make_unique<Node>());
        nodes_.back()->branch = branch;
        return *nodes_.back();
    }
    void* lanes_at(const BranchPath& branch) override { return &at(branch).lanes; }
    void* tape_at(const BranchPath& branch, const TapeKind* kind) override {
        Node& node = at(branch);
        for (const auto& [other, tape] : node.tapes)
            if (other == kind) return tape.get();
        return node.tapes.emplace_back(kind, kind->code().make_tape()).second.get();
    }

    std::vector<std::unique_ptr<Node>> nodes_;
    std::vector<void*> parts_;
};

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/plan/frame.ipp"
#endif
