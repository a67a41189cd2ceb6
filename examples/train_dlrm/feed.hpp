// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "data.hpp"
#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/data/batch.hpp"

/// \file
/// Batches of all ranks, in step: how many samples a global batch has, and whether every rank could read its own.

namespace train_dlrm {

/// Reads a rank's batches and tells the others how many samples each has, since a loss is a mean over all of them.
/// The number travels ahead, beside the ids. Cost: a message of 8 bytes a peer and batch, and one at the end.
class Feed {
  public:
    Feed(sw::CommunicatorRef comm, Loader& loader);
    Feed(const Feed&) = delete;
    Feed& operator=(const Feed&) = delete;
    ~Feed();

    /// Back to the beginning of the data.
    void rewind();
    /// Reads the next batch into `batch`, an empty one at the end or when it cannot be read, and tells the others.
    /// Collective in order, does not wait. \returns false at the end of the data
    bool announce(sw::ClickBatch& batch);
    /// The number of samples of the announced batch over all ranks. Collective.
    /// \returns nothing when the data has ended: 0
    [[nodiscard]] std::int64_t global_samples();
    /// True when some rank could not read its batch; all ranks then call fail().
    [[nodiscard]] bool failed() const noexcept { return failed_; }
    /// \throws BadInput on every rank, saying why
    [[noreturn]] void fail();

    /// Seconds spent waiting for data, and for other ranks' numbers.
    [[nodiscard]] double input_seconds() const noexcept { return input_seconds_; }
    [[nodiscard]] double sync_seconds() const noexcept { return sync_seconds_; }
    void forget_seconds() noexcept { input_seconds_ = sync_seconds_ = 0; }
    /// Bytes and messages that the announcement of one batch takes, over all ranks. A pure function.
    [[nodiscard]] static sw::TrafficMatrix predict(const sw::Topology& topology);

  private:
    static constexpr std::int64_t ended = -1;
    static constexpr std::int64_t unreadable = -2;

    sw::CommunicatorRef comm_;
    Loader* loader_;
    std::int64_t mine_ = 0;
    std::vector<sw::Buffer<std::byte>> theirs_;  // (rank)
    std::vector<sw::OutMessage> out_;
    std::vector<sw::InMessage> in_;
    sw::Ticket ticket_;
    bool waiting_ = false;
    bool failed_ = false;
    std::string wrong_;
    double input_seconds_ = 0;
    double sync_seconds_ = 0;
};

}  // namespace train_dlrm
