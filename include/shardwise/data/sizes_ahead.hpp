// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
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
#include "shardwise/topology/topology.hpp"

/// \file
/// A few numbers of each rank about its next batch, known to all ranks when they come to it.

namespace shardwise::inline SHARDWISE_ABI::detail {

/// What ranks tell each other ahead of a batch, and what becomes of data that cannot be read.
/// Cost: a message of 8 bytes a number to each other rank for each announcement.
template <std::size_t Count>
class SizesAhead {
  public:
    using Numbers = std::array<std::int64_t, Count>;

    SizesAhead(const SizesAhead&) = delete;
    SizesAhead& operator=(const SizesAhead&) = delete;

    /// (rank): samples of the batch that global_samples() told of; valid until it tells of another.
    [[nodiscard]] std::span<const std::int64_t> samples_by_rank() const noexcept { return samples_; }
    /// True on every rank when some rank could not read the batch; all ranks then call fail().
    [[nodiscard]] bool failed() const noexcept { return failed_; }
    /// Ends a run whose data cannot be read. Collective; one message to each other rank.
    /// \throws BadInput on every rank: what the first rank that failed could not read
    [[noreturn]] void fail() {
        agree_on_input(comm_, wrong_);
        throw Error{"ranks disagree about a failure to read data", 3};
    }

    /// What this rank has to tell all others with its next batches, beside their sizes: bits of the program's own, such
    /// as that it was asked to stop. They travel in the same 8 bytes.
    void note(std::uint8_t bits) noexcept { noted_ = bits; }
    /// The bits that any rank had noted when it announced the batch that global_samples() told of; the same on all
    /// ranks.
    [[nodiscard]] std::uint8_t notes() const noexcept { return notes_; }

    /// Seconds in announce(), of which reading is nearly all, and of waiting for other ranks' numbers.
    [[nodiscard]] double input_seconds() const noexcept { return input_seconds_; }
    [[nodiscard]] double sync_seconds() const noexcept { return sync_seconds_; }
    /// Both start again from zero.
    void forget_seconds() noexcept { input_seconds_ = sync_seconds_ = 0; }
    /// What one announcement moves. Not collective: a pure function, the same on all ranks.
    [[nodiscard]] static TrafficMatrix predict(const Topology& topology) {
        TrafficMatrix moved{topology};
        for (int from = 0; from < topology.ranks(); ++from)
            for (int to = 0; to < topology.ranks(); ++to)
                if (from != to) moved.at(from, to) = {.payload = 0, .control = sizeof(Numbers), .messages = 1};
        return moved;
    }

  protected:
    /// Instead of a batch's samples.
    static constexpr std::int64_t ended = -1;
    static constexpr std::int64_t unreadable = -2;

    explicit SizesAhead(CommunicatorRef comm)
        : comm_{comm},
          samples_(static_cast<std::size_t>(comm.size())),
          theirs_(static_cast<std::size_t>(comm.size())) {}
    ~SizesAhead() {
        if (waiting_) comm_.abandon(ticket_);
    }

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

    void start_over() {
        SHARDWISE_ASSERT(!waiting_);
        failed_ = false;
        wrong_.clear();
    }
    /// Sends this rank's numbers; does not wait.
    void tell(const Numbers& mine) {
        SHARDWISE_ASSERT(!waiting_);
        mine_ = mine;
        mine_[0] = (mine[0] - unreadable) | std::int64_t{noted_} << bits_begin;
        out_.clear();
        in_.clear();
        for (int peer = 0; peer < comm_.size(); ++peer) {
            if (peer == comm_.rank()) continue;
            out_.push_back({.to = peer, .bytes = std::as_bytes(std::span{mine_}), .payload = 0});
            in_.push_back({.from = peer, .into = &theirs_[static_cast<std::size_t>(peer)], .expected = sizeof mine_});
        }
        ticket_ = comm_.post({.step = "sizes of batches", .flight = 0}, out_, in_);
        waiting_ = true;
    }
    /// (rank): the numbers of all. Waits.
    std::vector<Numbers> hear() {
        comm_.wait(ticket_);
        waiting_ = false;
        std::vector<Numbers> all(theirs_.size(), mine_);
        notes_ = 0;
        for (std::size_t rank = 0; rank < all.size(); ++rank) {
            if (static_cast<int>(rank) != comm_.rank()) std::memcpy(&all[rank], theirs_[rank].data(), sizeof mine_);
            std::int64_t& size = all[rank][0];
            notes_ = static_cast<std::uint8_t>(notes_ | size >> bits_begin);
            size = (size & ((std::int64_t{1} << bits_begin) - 1)) + unreadable;
        }
        return all;
    }

    /// Measures reading, and waiting for other ranks, until the end of its life.
    [[nodiscard]] Seconds measure_input() { return Seconds{input_seconds_}; }
    [[nodiscard]] Seconds measure_sync() { return Seconds{sync_seconds_}; }
    /// This rank cannot read on, and why.
    void cannot_read(const std::string& why) { wrong_ = why; }
    [[nodiscard]] bool can_read() const noexcept { return wrong_.empty(); }
    /// What a rank told: a batch's samples, or what stands in their place. \returns its samples
    std::int64_t hear_of(std::size_t rank, std::int64_t told) noexcept {
        failed_ = failed_ || told == unreadable;
        return samples_[rank] = std::max<std::int64_t>(0, told);
    }
    [[nodiscard]] int ranks() const { return comm_.size(); }

  private:
    static constexpr unsigned bits_begin = 48;  // in the first number, behind a size

    CommunicatorRef comm_;
    std::uint8_t noted_ = 0;
    std::uint8_t notes_ = 0;
    std::vector<std::int64_t> samples_;  // (rank)
    bool failed_ = false;
    std::string wrong_;  // what this rank could not read
    double input_seconds_ = 0;
    double sync_seconds_ = 0;
    Numbers mine_{};
    std::vector<Buffer<std::byte>> theirs_;  // (rank)
    std::vector<OutMessage> out_;
    std::vector<InMessage> in_;
    Ticket ticket_;
    bool waiting_ = false;
};

}  // namespace shardwise::inline SHARDWISE_ABI::detail
