// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "shardwise/comm/collectives.hpp"
#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/comm/traffic.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/data/batch.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// Batches of all ranks, in step: how many samples a global batch has, and whether every rank could read its own.

namespace shardwise::inline SHARDWISE_ABI {

/// Lends batches one after the other: `next` returns null at the end, `rewind` goes back to the beginning. A
/// PrefetchingLoader is one.
template <class Loader>
concept BatchLoader = requires(Loader& loader) {
    { loader.next() } -> std::convertible_to<const ClickBatch*>;
    loader.rewind();
};

/// Reads this rank's batches and tells the others how many samples each has, since a loss is a mean over the samples of
/// all ranks, and a rank that cannot read has to stop all of them. The number travels ahead, beside a batch's ids:
///
///     batches.announce(batch);                       // reads, and sends the number
///     flight = layer.start(batch.ids.view());        // the ids travel with it
///     // ... the step before ...
///     const std::int64_t samples = batches.global_samples();
///     if (batches.failed()) batches.fail();          // after flights under way have ended
///     if (samples == 0) break;                       // the end, on every rank
///
/// Cost: a message of 8 bytes to each other rank for each batch, and for the end. One instance a rank; not thread safe.
template <BatchLoader Loader>
class GlobalBatches {
  public:
    /// Not collective.
    /// \param loader  of this rank's part of the data; outlives this. No batch is empty on every rank, see Slice
    /// \param dense_columns, features  of an empty batch, where this rank has no sample and others do
    GlobalBatches(CommunicatorRef comm, Loader& loader, std::int64_t dense_columns, std::int64_t features)
        : comm_{comm},
          loader_{&loader},
          dense_columns_{dense_columns},
          features_{features},
          theirs_(static_cast<std::size_t>(comm.size())) {}
    GlobalBatches(const GlobalBatches&) = delete;
    GlobalBatches& operator=(const GlobalBatches&) = delete;
    ~GlobalBatches() {
        if (waiting_) comm_.abandon(ticket_);
    }

    /// Back to the beginning of the data, not between announce() and global_samples(). Not collective, but all ranks do
    /// it at the same batch.
    void rewind() {
        SHARDWISE_ASSERT(!waiting_);
        failed_ = false;
        wrong_.clear();
        loader_->rewind();
    }
    /// Reads the next batch into `batch`, an empty one at the end or when it cannot be read (BadInput), and tells the
    /// others. Collective in order, does not wait; global_samples() follows before the next one.
    /// \returns false at the end of the data
    bool announce(ClickBatch& batch) {
        SHARDWISE_ASSERT(!waiting_);
        const Seconds measured{input_seconds_};
        mine_ = ended;
        batch.resize_single(0, dense_columns_, features_);
        try {
            if (const ClickBatch* next = loader_->next()) {
                batch = *next;
                mine_ = batch.samples();
            }
        } catch (const BadInput& error) {
            wrong_ = error.what();
            mine_ = unreadable;
        }
        out_.clear();
        in_.clear();
        for (int peer = 0; peer < comm_.size(); ++peer) {
            if (peer == comm_.rank()) continue;
            out_.push_back({.to = peer, .bytes = std::as_bytes(std::span{&mine_, 1}), .payload = 0});
            in_.push_back({.from = peer, .into = &theirs_[static_cast<std::size_t>(peer)], .expected = sizeof mine_});
        }
        ticket_ = comm_.post({.step = "sizes of batches", .flight = 0}, out_, in_);
        waiting_ = true;
        return mine_ != ended;
    }
    /// The number of samples of the announced batch over all ranks; waits for the others' numbers. Collective.
    /// \returns 0 when the data has ended
    /// \throws BadInput on every rank when the data of some ranks has ended and that of others has not
    [[nodiscard]] std::int64_t global_samples() {
        const Seconds measured{sync_seconds_};
        comm_.wait(ticket_);
        waiting_ = false;
        std::int64_t sum = 0;
        int ends = 0;
        int first_end = 0;
        for (int rank = comm_.size() - 1; rank >= 0; --rank) {
            std::int64_t samples = mine_;
            if (rank != comm_.rank())
                std::memcpy(&samples, theirs_[static_cast<std::size_t>(rank)].data(), sizeof samples);
            failed_ = failed_ || samples == unreadable;
            if (samples == ended) {
                ++ends;
                first_end = rank;
            }
            sum += samples > 0 ? samples : 0;
        }
        if (!failed_ && ends != 0 && ends != comm_.size())
            throw BadInput{concat({"the data of rank ", first_end,
                                   " has ended, and that of other ranks has not: give all ranks the same files"})};
        return sum;
    }
    /// True on every rank when some rank could not read the batch; all ranks then call fail().
    [[nodiscard]] bool failed() const noexcept { return failed_; }
    /// Ends a run whose data cannot be read. Collective; one message to each other rank.
    /// \throws BadInput on every rank: what the first rank that failed could not read
    [[noreturn]] void fail() {
        agree_on_input(comm_, wrong_);
        throw Error{"ranks disagree about a failure to read data", 3};
    }

    /// Seconds in announce(), of which reading is nearly all, and in global_samples(): waiting for other ranks.
    [[nodiscard]] double input_seconds() const noexcept { return input_seconds_; }
    [[nodiscard]] double sync_seconds() const noexcept { return sync_seconds_; }
    /// Both start again from zero.
    void forget_seconds() noexcept { input_seconds_ = sync_seconds_ = 0; }
    /// What the announcement of one batch moves. Not collective: a pure function, the same on all ranks.
    [[nodiscard]] static TrafficMatrix predict(const Topology& topology) {
        TrafficMatrix moved{topology};
        for (int from = 0; from < topology.ranks(); ++from)
            for (int to = 0; to < topology.ranks(); ++to)
                if (from != to) moved.at(from, to) = {.payload = 0, .control = sizeof mine_, .messages = 1};
        return moved;
    }

  private:
    static constexpr std::int64_t ended = -1;
    static constexpr std::int64_t unreadable = -2;

    /// Adds the time of its life to a sum.
    class Seconds {
      public:
        explicit Seconds(double& sum) : sum_{&sum} {}
        Seconds(const Seconds&) = delete;
        Seconds& operator=(const Seconds&) = delete;
        ~Seconds() { *sum_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

      private:
        double* sum_;
        std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    };

    CommunicatorRef comm_;
    Loader* loader_;
    std::int64_t dense_columns_;
    std::int64_t features_;
    std::int64_t mine_ = 0;                  // samples of the announced batch, or one of the two above
    std::vector<Buffer<std::byte>> theirs_;  // (rank)
    std::vector<OutMessage> out_;
    std::vector<InMessage> in_;
    Ticket ticket_;
    bool waiting_ = false;
    bool failed_ = false;
    std::string wrong_;
    double input_seconds_ = 0;
    double sync_seconds_ = 0;
};

}  // namespace shardwise::inline SHARDWISE_ABI
