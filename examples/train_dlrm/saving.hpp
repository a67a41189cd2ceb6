// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "options.hpp"
#include "shardwise/checkpoint/checkpoint_folder.hpp"
#include "shardwise/comm/communicator_ref.hpp"
#include "stopwatch.hpp"

/// \file
/// Checkpoints while a run trains, and what ranks tell each other of them and of signals, with the sizes of batches.

namespace train_dlrm {

/// What a rank notes with a batch.
struct Notes {
    static constexpr std::uint8_t interrupted = 1;  ///< SIGINT came
    static constexpr std::uint8_t terminated = 2;   ///< SIGTERM came
    static constexpr std::uint8_t save = 4;         ///< on rank 0: it is time to
    static constexpr std::uint8_t writing = 8;      ///< this rank's part of a checkpoint
    static constexpr std::uint8_t progress = 16;    ///< on rank 0: a line is due

    /// What a rank notes of the signal that it got.
    [[nodiscard]] static std::uint8_t of_signal() noexcept;
    /// The signal that some rank got; 0: none. The same on all ranks.
    [[nodiscard]] static int signal(std::uint8_t notes) noexcept;
};

/// When a run saves, and where. All but `notes` is collective.
class Saving {
  public:
    using Make = std::function<sw::Checkpoint()>;

    /// \param make  collects what is saved
    Saving(const Options& options, sw::CommunicatorRef comm, Make make);

    /// Before the first step of a run that goes on from so many. \throws BadInput on every rank where the folder has a
    /// later checkpoint
    void begin(std::int64_t steps);
    /// What this rank has to note with its next batch.
    [[nodiscard]] std::uint8_t notes() const;
    /// Behind a step, and before the next: begins a checkpoint where one is due, and completes the one that was begun
    /// once all ranks have written their parts. \param heard  what ranks noted with the batch that comes next
    /// \param measured  steps are: what a save moves is none of theirs, so that it waits where it may
    void between_steps(std::int64_t steps, std::uint8_t heard, bool measured);
    /// The last one, where something is to be saved.
    void end(std::int64_t steps);

  private:
    void start(std::int64_t steps);

    const Options* o_;
    sw::CommunicatorRef comm_;
    Make make_;
    std::optional<sw::CheckpointFolder> folder_;
    std::int64_t saved_ = -1;  // step of the last checkpoint
    std::int64_t first_ = 0;   // step that the run goes on from
    int heard_ = 0;            // batches that were told of since that began
    Clock::time_point last_ = Clock::now();
};

}  // namespace train_dlrm
