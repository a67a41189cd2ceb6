// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <vector>

#include "model.hpp"
#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/comm/counting.hpp"
#include "shardwise/comm/traffic.hpp"
#include "shardwise/data/batch.hpp"

/// \file
/// Predicted bytes beside those that moved, for the first steps of a run.

namespace train_dlrm {

using Counted = sw::CountingCommunicator<sw::CommunicatorRef>;

/// The batches of all ranks, on rank 0; empty on the others. Collective.
[[nodiscard]] std::vector<sw::JaggedBatch<std::int64_t>> gather_ids(const sw::ClickBatch& batch,
                                                                    sw::CommunicatorRef comm);

/// Predicts steps on rank 0, and counts on every rank what they move.
///
/// `uncounted` carries what only the prediction needs: the ids of all ranks go to rank 0.
class Meter {
  public:
    Meter(Counted& counted, sw::CommunicatorRef uncounted, std::int64_t steps);

    /// True while steps are measured.
    [[nodiscard]] bool open() const noexcept { return open_; }
    /// True when the step that is now under way is the last one to be measured.
    [[nodiscard]] bool closing() const noexcept { return open_ && steps_ == wanted_; }
    /// Before the first message of the first step. Not collective.
    void begin();
    /// A step that is about to run. Collective; returns on all ranks together.
    void predict(const Model& model, const sw::ClickBatch& batch);
    /// The first step after `closing`, or the end of the data (`ended`: the ranks have told each other), has been
    /// reached.
    void close(bool ended);

    /// Measured steps.
    [[nodiscard]] std::int64_t steps() const noexcept { return steps_; }
    /// What they move by the prediction; filled on rank 0.
    [[nodiscard]] const sw::TrafficMatrix& predicted() const noexcept { return predicted_; }
    /// What this rank sent.
    [[nodiscard]] sw::Traffic moved() const { return moved_; }
    /// The embedding layer's part, a step; on rank 0.
    [[nodiscard]] const std::vector<sw::LayerCost>& costs() const noexcept { return costs_; }

  private:
    Counted* counted_;
    sw::CommunicatorRef uncounted_;
    std::int64_t wanted_;
    std::int64_t steps_ = 0;
    bool open_ = false;
    sw::TrafficMatrix predicted_;
    sw::Traffic moved_;
    std::vector<sw::LayerCost> costs_;
};

}  // namespace train_dlrm
