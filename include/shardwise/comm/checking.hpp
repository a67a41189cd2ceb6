// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardwise/comm/communicator.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// A decorator for debugging: all ranks agree on a round before any of its data moves.

namespace shardwise::inline SHARDWISE_ABI {

/// Checks, at every post, that all ranks do the same thing, and forwards it to `C` if so.
///
/// Each rank states to every other rank its step, flight, source line, and what it sends to and expects from whom. All
/// ranks then look at the same statements and come to the same verdict. When steps or flights differ, or a message is
/// sent that is not expected, expected but not sent, or has another size than expected, or a round names a rank twice,
/// itself or none that exists, then **every** rank throws one and the same Mismatch, which names the two ranks, both
/// steps, flights, sizes and places in the source. Without this decorator only a wrong size is found by the receiver;
/// a rank in another collective is found by the deadline.
///
/// `post` is collective and blocks until all ranks have posted: this is for debugging. All ranks post every round,
/// those without messages too. Any number of rounds may be outstanding. One a rank, like the communicator below; it
/// belongs to the same thread.
/// Cost of a post: size() - 1 messages of 176 + 16 * size() bytes from every rank, all of them control.
template <Communicator C>
class CheckingCommunicator {
  public:
    explicit CheckingCommunicator(C& below)
        : below_{&below},
          ranks_{static_cast<std::size_t>(below.size())},
          sends_(ranks_ * ranks_),
          expects_(ranks_ * ranks_),
          headers_(ranks_),
          arrived_(ranks_) {
        mine_.resize(statement_bytes());
    }

    [[nodiscard]] int rank() const noexcept { return below_->rank(); }
    [[nodiscard]] int size() const noexcept { return below_->size(); }
    [[nodiscard]] Topology topology() const noexcept { return below_->topology(); }

    /// Collective; blocks until all ranks have posted. \throws Mismatch on all ranks when they disagree
    Ticket post(const Label& label, std::span<const OutMessage> out, std::span<const InMessage> in) {
        state(label, out, in);
        gather(label);
        judge();
        return below_->post(label, out, in);
    }
    [[nodiscard]] bool test(Ticket ticket) { return below_->test(ticket); }
    void wait(Ticket ticket) { below_->wait(ticket); }
    void abandon(Ticket ticket) noexcept { below_->abandon(ticket); }
    void fail(const std::string& reason) { below_->fail(reason); }
    [[nodiscard]] int enroll() noexcept requires Enrolling<C> { return below_->enroll(); }

  private:
    static constexpr std::int64_t nothing = -2;  // beside InMessage::any_size

    struct Header {
        std::array<char, 40> step{};
        std::array<char, 72> file{};
        std::array<char, 56> misuse{};
        std::int32_t line = 0;
        std::uint32_t flight = 0;
    };
    static_assert(sizeof(Header) == 176);

    [[nodiscard]] std::size_t statement_bytes() const { return sizeof(Header) + 2 * ranks_ * sizeof(std::int64_t); }

    /// Keeps the end of what is too long.
    template <std::size_t N>
    static void write(std::array<char, N>& field, std::string_view text) {
        field.fill('\0');
        if (text.size() > N - 1) text.remove_prefix(text.size() - (N - 1));
        std::copy(text.begin(), text.end(), field.begin());
    }

    void state(const Label& label, std::span<const OutMessage> out, std::span<const InMessage> in) {
        const auto me = static_cast<std::size_t>(rank());
        Header& header = headers_[me];
        write(header.step, label.step);
        write(header.file, label.where.file);
        write(header.misuse, "");
        header.line = static_cast<std::int32_t>(label.where.line);
        header.flight = label.flight;
        const auto note = [&](std::vector<std::int64_t>& table, int peer, std::int64_t bytes, const char* what) {
            const char* wrong = nullptr;
            if (peer < 0 || peer >= size())
                wrong = "no such rank";
            else if (peer == rank())
                wrong = "itself";
            else if (table[me * ranks_ + static_cast<std::size_t>(peer)] != nothing)
                wrong = "the same rank twice";
            else
                table[me * ranks_ + static_cast<std::size_t>(peer)] = bytes;
            if (wrong != nullptr)
                std::snprintf(header.misuse.data(), header.misuse.size(), "%s %d: %s", what, peer, wrong);
        };
        std::fill_n(sends_.begin() + static_cast<std::ptrdiff_t>(me * ranks_), ranks_, nothing);
        std::fill_n(expects_.begin() + static_cast<std::ptrdiff_t>(me * ranks_), ranks_, nothing);
        for (const OutMessage& message : out)
            note(sends_, message.to, static_cast<std::int64_t>(message.bytes.size()), "sends to rank");
        for (const InMessage& message : in)
            note(expects_, message.from, message.expected, "expects from rank");
    }

    void gather(const Label& label) {
        const auto me = static_cast<std::size_t>(rank());
        const std::size_t table = ranks_ * sizeof(std::int64_t);
        std::memcpy(mine_.data(), &headers_[me], sizeof(Header));
        std::memcpy(mine_.data() + sizeof(Header), &sends_[me * ranks_], table);
        std::memcpy(mine_.data() + sizeof(Header) + table, &expects_[me * ranks_], table);
        out_.clear();
        in_.clear();
        for (std::size_t peer = 0; peer < ranks_; ++peer) {
            if (peer == me) continue;
            out_.push_back({.to = static_cast<int>(peer), .bytes = mine_.span(), .payload = 0});
            in_.push_back({.from = static_cast<int>(peer),
                           .into = &arrived_[peer],
                           .expected = static_cast<std::int64_t>(statement_bytes())});
        }
        // one name for all steps, since this round is to arrive where the ranks are at different ones
        const Ticket ticket = below_->post({.step = "check a round", .flight = 0, .where = label.where}, out_, in_);
        try {
            below_->wait(ticket);
        } catch (...) {
            below_->abandon(ticket);
            throw;
        }
        for (std::size_t peer = 0; peer < ranks_; ++peer) {
            if (peer == me) continue;
            const std::byte* statement = arrived_[peer].data();
            std::memcpy(&headers_[peer], statement, sizeof(Header));
            std::memcpy(&sends_[peer * ranks_], statement + sizeof(Header), table);
            std::memcpy(&expects_[peer * ranks_], statement + sizeof(Header) + table, table);
        }
    }

    /// A function of the statements alone: the same on all ranks.
    void judge() const {
        for (std::size_t rank = 0; rank < ranks_; ++rank)
            if (headers_[rank].misuse[0] != '\0')
                throw Mismatch{concat({describe_rank(rank), " ", headers_[rank].misuse.data()})};
        for (std::size_t rank = 1; rank < ranks_; ++rank)
            if (headers_[rank].step != headers_[0].step || headers_[rank].flight != headers_[0].flight)
                throw Mismatch{
                    concat({"ranks are in different operations: ", describe_rank(0), ", ", describe_rank(rank)})};
        for (std::size_t from = 0; from < ranks_; ++from)
            for (std::size_t to = 0; to < ranks_; ++to) {
                const std::int64_t sent = sends_[from * ranks_ + to];
                const std::int64_t expected = expects_[to * ranks_ + from];
                if (sent == expected || (sent != nothing && expected == InMessage::any_size)) continue;
                throw Mismatch{concat({describe_rank(from), " sends ", describe_size(sent), " to rank ", to, ", but ",
                                       describe_rank(to), " expects ", describe_size(expected), " from rank ", from})};
            }
    }
    [[nodiscard]] static std::string describe_size(std::int64_t bytes) {
        if (bytes == nothing) return "nothing";
        return bytes == InMessage::any_size ? "a message of any size" : std::to_string(bytes) + " bytes";
    }
    [[nodiscard]] std::string describe_rank(std::size_t rank) const {
        const Header& header = headers_[rank];
        return concat({"rank ", rank, " at step '", header.step.data(), "' of flight ", header.flight, " (",
                       header.file.data(), ":", header.line, ")"});
    }

    C* below_;
    std::size_t ranks_;
    std::vector<std::int64_t> sends_;    // (from, to) bytes, or nothing
    std::vector<std::int64_t> expects_;  // (to, from) bytes, any_size or nothing
    std::vector<Header> headers_;        // a rank
    Buffer<std::byte> mine_;
    std::vector<Buffer<std::byte>> arrived_;
    std::vector<OutMessage> out_;
    std::vector<InMessage> in_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
