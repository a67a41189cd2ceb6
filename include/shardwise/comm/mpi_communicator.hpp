// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shardwise/comm/communicator.hpp"
#include "shardwise/comm/mpi_environment.hpp"
#include "shardwise/comm/mpi_messages.hpp"
#include "shardwise/comm/mpi_pause.hpp"
#include "shardwise/comm/mpi_topology.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// The ranks of an MPI communicator, from point-to-point calls alone.

namespace shardwise::inline SHARDWISE_ABI {

/// A Communicator over MPI: ranks are processes.
///
/// A message's tag is its number on its ordered pair of ranks, counted at post, so flights never mix whatever the order
/// in which they are completed. A message of known size, less than a chunk, is received ahead, straight into its
/// buffer; others are probed before they are received. Either way the receiver learns the true size, and not a byte
/// travels beyond those of the messages. A message of `chunk_bytes` or more travels in chunks of that size under one
/// tag; a shorter chunk, possibly empty, ends it.
///
/// Progress is made inside `post`, `test` and `wait` only, on all that is outstanding. Waiting polls for about 0.1 ms,
/// then yields the processor, then sleeps unless a long message is under way (MpiPause). A ticket that is not
/// outstanding counts as complete. Once a message had another size than expected, every later call throws that Mismatch
/// again: the ranks no longer do the same thing. Records are pooled: a round like an earlier one allocates nothing (but
/// inside MPI).
///
/// Constructing and destroying are collective. One thread a communicator; MPI_THREAD_FUNNELED suffices,
/// but where a layer's thread answers other hosts (MpiTurn).
/// Cost: one MPI message a message of a round (size / chunk_bytes more for a chunked one), its bytes and no more.
class MpiCommunicator {
  public:
    /// Collective, without a deadline; a few small collectives of MPI.
    /// \throws BadInput on all ranks: options that differ between ranks; hosts that do not divide the ranks; real hosts
    ///         of different size or ranks not numbered host by host
    explicit MpiCommunicator(const MpiOptions& options = {})
        : deadline_{options.deadline},
          comm_{options.comm},
          rank_{comm_.rank()},
          topology_{detail::mpi_topology(comm_.get(), options)},
          messages_{comm_.get(), topology_.ranks(), options.chunk_bytes} {}
    MpiCommunicator(const MpiCommunicator&) = delete;
    MpiCommunicator& operator=(const MpiCommunicator&) = delete;
    /// Every round should be complete. Otherwise MPI is left to itself, and the memory of those rounds has to live on.
    ~MpiCommunicator() {
        if (outstanding_ != 0) comm_.release();
    }

    /// This process's number, from 0 on.
    [[nodiscard]] int rank() const noexcept { return rank_; }
    /// Counts those who use the communicator: 0, 1, ..., see Enrolling.
    [[nodiscard]] int enroll() noexcept { return enrolled_++; }
    /// How many ranks there are.
    [[nodiscard]] int size() const noexcept { return topology_.ranks(); }
    /// Which ranks share a host, and how many hosts there are.
    [[nodiscard]] Topology topology() const noexcept { return topology_; }
    /// Number of rounds that are posted and not yet known to be complete.
    [[nodiscard]] std::int64_t outstanding() const noexcept { return outstanding_; }

    /// Starts a round, see Exchanging. Does not block.
    /// \throws Error when MPI reports one; Mismatch after an earlier one
    Ticket post(const Label& label, std::span<const OutMessage> out, std::span<const InMessage> in) {
        throw_if_broken();
        const std::uint32_t index = detail::take_record(rounds_, free_);
        Round& round = rounds_[index];
        round.label = label;
        round.pending = static_cast<std::int64_t>(out.size() + in.size());
        round.live = true;
        ++outstanding_;
        const std::uint64_t mark = detail::MpiMessages::mark(label);
        try {
            for (const InMessage& message : in) {
                SHARDWISE_ASSERT(message.from != rank_ && message.into != nullptr);
                messages_.expect(index, mark, message);
            }
            for (const OutMessage& message : out) {
                SHARDWISE_ASSERT(message.to != rank_);
                messages_.send(index, mark, message.to, message.bytes);
            }
        } catch (...) {  // half a round: nobody will wait for it, and its memory goes away
            broken_ = std::current_exception();
            throw_if_broken();
        }
        return Ticket{std::uint64_t{round.generation} << 32U | index};
    }

    /// Makes progress on everything and says whether the round is complete.
    /// \throws Mismatch where another size arrives than was expected \throws Error when MPI reports one
    [[nodiscard]] bool test(Ticket ticket) {
        throw_if_broken();
        const std::uint32_t index = find(ticket);
        if (index == none) return true;
        if (rounds_[index].pending != 0) progress();
        throw_if_broken();
        if (rounds_[index].pending != 0) return false;
        retire(index);
        return true;
    }

    /// Blocks until the round is complete, making progress on everything.
    /// \throws Mismatch where another size arrives than was expected \throws DeadlinePassed after printing all that
    /// this rank waits for \throws Error when MPI reports one
    void wait(Ticket ticket) {
        throw_if_broken();
        const std::uint32_t index = find(ticket);
        if (index == none) return;
        const auto begin = Clock::now();
        for (detail::MpiPause pause; rounds_[index].pending != 0;) {
            const bool moved = progress();
            throw_if_broken();
            if (moved) {
                pause = {};
            } else if (rest(pause) && Clock::now() - begin > deadline_) {
                give_up(index);
            }
        }
        retire(index);
    }

    /// Lets go of a round because its memory goes away. It gets a second to complete, which suffices where the other
    /// ranks do the same; after that the communicator is of no use any more, and a peer may wait in vain.
    void abandon(Ticket ticket) noexcept {
        const std::uint32_t index = find(ticket);
        if (index == none) return;
        detail::MpiPause pause;
        for (const auto begin = Clock::now();
             rounds_[index].pending != 0 && !broken_ && Clock::now() - begin < patience;)
            if (!progress()) rest(pause);
        if (broken_) settle();
        if (rounds_[index].pending == 0) return retire(index);
        if (!broken_) {
            try {
                broken_ = std::make_exception_ptr(
                    PeerFailed{rank_, "it left " + describe_with_place(rounds_[index].label) + " unfinished"});
            } catch (...) {
                broken_ = std::current_exception();
            }
        }
        settle();
    }

    /// Prints the reason, waits a second so that others can print theirs, and ends the job with exit status 3.
    [[noreturn]] void fail(const std::string& reason) { detail::mpi_die(comm_.get(), rank_, reason); }

  private:
    using Clock = std::chrono::steady_clock;
    static constexpr std::uint32_t none = detail::MpiMessage::none;
    static constexpr std::chrono::seconds patience{1};

    struct Round {
        static constexpr std::uint32_t none = detail::MpiMessage::none;
        Label label;
        std::int64_t pending = 0;  // messages
        std::uint32_t generation = 1;
        std::uint32_t next = none;  // in the list of free ones
        bool live = false;
    };

    [[nodiscard]] std::uint32_t find(Ticket ticket) const noexcept {
        const auto index = static_cast<std::uint32_t>(ticket.value());
        const bool known = index < rounds_.size() && rounds_[index].live &&
                           rounds_[index].generation == static_cast<std::uint32_t>(ticket.value() >> 32U);
        return known ? index : none;
    }
    void retire(std::uint32_t index) noexcept {
        Round& round = rounds_[index];
        round.live = false;
        ++round.generation;
        round.next = free_;
        free_ = index;
        --outstanding_;
    }

    void complete(const detail::MpiMessage& message) {
        Round& round = rounds_[message.round];
        --round.pending;
        if (broken_ || (!message.wrong_size() && !message.foreign)) return;
        const std::string bytes = (message.unmeasured ? "at least " : "") + std::to_string(message.moved);
        if (message.foreign) {
            broken_ = std::make_exception_ptr(
                Mismatch{name() + " is at " + describe_with_place(round.label) + ", and rank " +
                         std::to_string(message.peer) + " sent " + bytes +
                         " bytes of another step: all ranks make the same calls in one order (CheckingCommunicator "
                         "names both)"});
            return;
        }
        broken_ = std::make_exception_ptr(Mismatch{
            name() + " expects " + std::to_string(message.size) + " bytes from rank " + std::to_string(message.peer) +
            " at " + describe_with_place(round.label) + ", but " + bytes + " bytes came"});
    }
    /// \returns whether something moved; an error is kept in broken_
    bool progress() noexcept {
        try {
            return messages_.progress([this](const detail::MpiMessage& message) { complete(message); });
        } catch (...) {
            if (!broken_) broken_ = std::current_exception();
            return false;
        }
    }
    bool rest(detail::MpiPause& pause) const {
        return pause([this] { return !messages_.long_under_way(); });
    }
    void throw_if_broken() {
        if (!broken_) return;
        settle();
        std::rethrow_exception(broken_);
    }
    /// The callers' buffers may go away soon: receives whose message has not come are taken back, and what MPI is
    /// moving gets up to a second to end. After that no memory of theirs is touched.
    void settle() noexcept {
        if (settled_) return;
        settled_ = true;
        try {
            messages_.withdraw();
            detail::MpiPause pause;
            for (const auto begin = Clock::now(); messages_.busy() && Clock::now() - begin < patience;)
                if (!messages_.progress_requests([this](const detail::MpiMessage& message) { complete(message); }))
                    rest(pause);
        } catch (...) {
            if (!broken_) broken_ = std::current_exception();
        }
    }

    [[nodiscard]] std::string name() const { return "rank " + std::to_string(rank_); }
    [[noreturn]] void give_up(std::uint32_t index) const {
        std::vector<std::string> waits(rounds_.size());
        messages_.for_each([&](const detail::MpiMessage& message) {
            std::string& text = waits[message.round];
            text += text.empty() ? ": " : ", ";
            text += message.leaving() ? "to send " : "for ";
            text += message.any_size() ? "a message" : std::to_string(message.size) + " bytes";
            text += (message.leaving() ? " to rank " : " from rank ") + std::to_string(message.peer);
        });
        std::string report;
        for (std::size_t i = 0; i < rounds_.size(); ++i) {
            if (!rounds_[i].live || rounds_[i].pending == 0) continue;
            waits[i].insert(0, name() + " waits at " + describe_with_place(rounds_[i].label));
            report += waits[i] + "\n";
        }
        std::fputs(report.c_str(), stderr);
        std::fflush(stderr);
        throw DeadlinePassed{concat({waits[index], ": the deadline of ", deadline_.count(), " ms has passed"})};
    }

    std::chrono::milliseconds deadline_;
    detail::MpiHandle comm_;
    int rank_;
    int enrolled_ = 0;
    Topology topology_;
    detail::MpiMessages messages_;
    std::vector<Round> rounds_;
    std::uint32_t free_ = none;
    std::int64_t outstanding_ = 0;  // rounds
    std::exception_ptr broken_;     // why nothing works any more
    bool settled_ = false;
};

static_assert(Communicator<MpiCommunicator>);

}  // namespace shardwise::inline SHARDWISE_ABI
