// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "data.hpp"
#include "options.hpp"
#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/comm/traffic.hpp"
#include "shardwise/data/batch.hpp"
#include "shardwise/data/hot_batches.hpp"
#include "shardwise/embedding/runtime/layer_base.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// Batches of the training data, as they come or sorted into hot ones and others.

namespace train_dlrm {

/// Samples and global batches of a kind, and what their steps took.
struct Fed {
    std::int64_t samples = 0;
    std::int64_t batches = 0;
    double seconds = 0;
};

/// Training batches of all ranks in step; see shardwise::GlobalBatches and shardwise::HotBatches.
class Feed {
    using HotBatches = sw::HotBatches<Loader>;

    template <class Use>
    auto of(Use use) {
        return hot_ ? use(*hot_) : use(*all_);
    }

  public:
    /// \throws BadInput for --hot-batches with a layer that has no replicated row
    Feed(sw::CommunicatorRef comm, Loader& loader, const Options& options, const sw::LayerBase& layer);

    bool announce(sw::ClickBatch& batch) {
        return of([&](auto& batches) { return batches.announce(batch); });
    }
    [[nodiscard]] std::int64_t global_samples() {
        return of([](auto& batches) { return batches.global_samples(); });
    }
    /// (rank): of the batch that global_samples() told of.
    [[nodiscard]] std::span<const std::int64_t> samples_by_rank() {
        return of([](auto& batches) { return batches.samples_by_rank(); });
    }
    /// Of the batch that was announced last.
    [[nodiscard]] sw::BatchKind kind() const noexcept { return hot_ ? hot_->kind() : sw::BatchKind::any; }
    /// Bits that travel with the sizes of batches; see sw::GlobalBatches.
    void note(std::uint8_t bits) {
        of([&](auto& batches) { batches.note(bits); });
    }
    [[nodiscard]] std::uint8_t notes() {
        return of([](auto& batches) { return batches.notes(); });
    }
    [[nodiscard]] bool failed() {
        return of([](auto& batches) { return batches.failed(); });
    }
    void fail() {
        of([](auto& batches) { batches.fail(); });
    }
    void rewind() {
        of([](auto& batches) { batches.rewind(); });
    }
    [[nodiscard]] double input_seconds() {
        return of([](auto& batches) { return batches.input_seconds(); });
    }
    [[nodiscard]] double sync_seconds() {
        return of([](auto& batches) { return batches.sync_seconds(); });
    }
    void forget_seconds() {
        of([](auto& batches) { batches.forget_seconds(); });
    }

    /// What the announcement of one batch moves.
    [[nodiscard]] sw::TrafficMatrix predict(const sw::Topology& topology) const {
        return hot_ ? HotBatches::predict(topology) : Batches::predict(topology);
    }
    /// How often as much has moved beside announcements.
    [[nodiscard]] std::int64_t passes() const noexcept { return hot_ ? hot_->passes() : 0; }

  private:
    std::optional<Batches> all_;
    std::optional<HotBatches> hot_;
};

}  // namespace train_dlrm
