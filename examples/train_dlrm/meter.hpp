// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "feed.hpp"
#include "model.hpp"
#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/comm/counting.hpp"
#include "shardwise/comm/traffic.hpp"
#include "shardwise/data/batch.hpp"
#include "shardwise/plan/memory.hpp"
#include "shardwise/plan/trace.hpp"

/// \file
/// Predicted bytes beside those that moved and are held, for the first steps of a run.

namespace train_dlrm {

using Counted = sw::CountingCommunicator<sw::CommunicatorRef>;

/// The batches of all ranks, on every rank. Collective.
[[nodiscard]] std::vector<sw::JaggedBatch<std::int64_t>> gather_ids(const sw::ClickBatch& batch,
                                                                    sw::CommunicatorRef comm);

/// The same of the first batch of the training data, read once more. Collective. \throws BadInput on every rank
[[nodiscard]] std::vector<sw::JaggedBatch<std::int64_t>> first_batch(const Options& options, sw::CommunicatorRef comm);

/// What the embedding layer holds on this rank, in bytes.
struct LayerMemory {
    std::int64_t fixed = 0;  ///< tables, moments and marks
    std::int64_t dynamic = 0;
    std::int64_t peak = 0;
    // by part; marks of rows to sync are with the syncs
    std::int64_t tables = 0;
    std::int64_t moments = 0;
    std::int64_t flights = 0;
    std::int64_t syncs = 0;
    friend bool operator==(const LayerMemory&, const LayerMemory&) = default;
};

/// The payload of the embedding layer's messages, in bytes.
struct LayerPayload {
    std::int64_t counted = 0;             ///< by the communicator
    std::vector<std::int64_t> moved;      ///< (part of the layer): as packed
    std::vector<std::int64_t> predicted;  ///< (part of the layer)
    std::int64_t synced = 0;              ///< of syncs of copies
    std::int64_t predicted_sync = 0;
};

/// Predicts steps, and counts what they move and hold.
///
/// `uncounted` carries what only the prediction needs: the ids of all ranks go to all ranks.
class Meter {
  public:
    /// \param flights  how many batches are on their way at once
    Meter(Counted& counted, sw::CommunicatorRef uncounted, std::int64_t steps, int flights);

    /// True while steps are measured.
    [[nodiscard]] bool open() const noexcept { return open_; }
    /// True when the step that is now under way is the last one to be measured.
    [[nodiscard]] bool closing() const noexcept { return open_ && steps_ == wanted_; }
    /// Before the first message of the first step. Not collective.
    void begin(const Model& model, const Feed& feed);
    /// A step that is about to run. Collective; returns on all ranks together.
    void predict(const Model& model, const Feed& feed, const sw::ClickBatch& batch, sw::BatchKind kind);
    /// After the last measured step, when nothing else is on its way but, at the end of the data (`ended`), the news of
    /// that. Not collective.
    void close(const Model& model, const Feed& feed, bool ended);

    /// Measures no more than so many steps.
    void at_most(std::int64_t steps) { wanted_ = std::min(wanted_, steps); }
    /// Nothing was measured: something else is on its way. Not collective.
    void abandon();

    /// Measured steps.
    [[nodiscard]] std::int64_t steps() const noexcept { return steps_; }
    /// What this rank sends in all measured steps.
    [[nodiscard]] const sw::Traffic& predicted() const noexcept { return predicted_; }
    [[nodiscard]] const sw::Traffic& moved() const noexcept { return moved_; }
    [[nodiscard]] const LayerPayload& payload() const noexcept { return payload_; }
    /// What the embedding layer holds after them.
    [[nodiscard]] LayerMemory predicted_memory(const Model& model) const;
    [[nodiscard]] const LayerMemory& measured_memory() const noexcept { return memory_; }
    /// What this rank sends in the rounds of each measured step of the embedding layer; flights are numbered from 1.
    [[nodiscard]] const sw::PredictedRounds& rounds() const noexcept { return rounds_; }

  private:
    Counted* counted_;
    sw::CommunicatorRef uncounted_;
    std::int64_t wanted_;
    std::int64_t steps_ = 0;
    bool open_ = false;
    sw::Traffic predicted_;
    sw::Traffic moved_;
    LayerPayload payload_;
    std::array<std::vector<sw::MemoryTally>, 2> tallies_;  // of flights of each kind
    std::optional<sw::BatchKind> last_;                    // kind of the last step
    std::size_t flight_ = 0;                               // of its kind, that it took
    sw::SyncTally syncs_;
    std::int64_t passes_ = 0;  // of the feed, before
    LayerMemory memory_;
    sw::PredictedRounds rounds_;
};

}  // namespace train_dlrm
