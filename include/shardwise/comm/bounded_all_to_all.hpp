// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "shardwise/comm/one_sided_ref.hpp"
#include "shardwise/comm/slot_counts.hpp"
#include "shardwise/core/at.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/source_location.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// An all-to-all whose ranks may be k calls apart. (Bounded lag, section III)

namespace shardwise::inline SHARDWISE_ABI {

/// Exchanges blocks of T between all ranks. `start` sends this rank's blocks and does not wait; up to k + 1 exchanges
/// are under way. `wait` gives the oldest, and waits for that one alone: a rank that is late holds others up only once
/// they are k + 1 exchanges ahead of it. With k = 0 it is an all-to-all as any other.
///
/// All ranks start the same number of exchanges, in one order; one that has nothing to send starts empty ones. Of one
/// thread. Collective: the constructor alone.
/// Cost of an exchange: a put a peer, of the block's bytes. Memory: 2k + 2 slots for each peer, of `most` elements and
/// a line of 64 bytes; messages are read where they lie.
template <class T>
class BoundedAllToAllV {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 8 && !std::is_same_v<T, bool>,
                  "BoundedAllToAllV sends types that are trivially copyable and aligned to 8 bytes or less; send bytes "
                  "instead of bools");

  public:
    using Blocks = std::span<const std::span<const T>>;  // (rank)

    /// \param slots  outlives this, as does what it refers to
    /// \param k      how far ranks may be apart, 0 or more, on all of them the same
    /// \param most   elements of a block, the same on all ranks
    /// \throws BadInput for a k or a size below 0; Mismatch where ranks disagree
    BoundedAllToAllV(OneSidedRef slots, int k, std::int64_t most) : slots_{slots}, k_{k}, most_{most} {
        constexpr int most_lag = std::numeric_limits<int>::max() / 4;  // slots are numbered by an int
        if (k < 0 || k > most_lag) throw BadInput{concat({"a lag of ", k, ": give a number from 0 to ", most_lag})};
        constexpr std::int64_t largest = (std::int64_t{1} << 62) / static_cast<std::int64_t>(sizeof(T));
        if (most < 0 || most > largest)
            throw BadInput{concat({"blocks of at most ", most, " elements: give a number from 0 to ", largest})};
        const auto ranks = static_cast<std::size_t>(slots.size());
        SlotLayout layout{.slots = exchange_slots(k), .from = {}, .to = {}};
        layout.from.assign(ranks, most * static_cast<std::int64_t>(sizeof(T)) + 1);  // a message of nothing is one, too
        layout.from[static_cast<std::size_t>(slots.rank())] = 0;
        layout.to = layout.from;
        window_ = slots_.open(layout);
        own_.resize(static_cast<std::size_t>(outstanding_exchanges(k)) + 1);  // and what `wait` gave last
        result_.resize(ranks);
        wait_.peers.reserve(ranks);
    }
    BoundedAllToAllV(const BoundedAllToAllV&) = delete;
    BoundedAllToAllV& operator=(const BoundedAllToAllV&) = delete;

    /// Sends `blocks`, one a rank, which may lie in what `wait` gave last; they are free once this returns, and so is
    /// that.
    /// \throws BadInput for a block of more than `most` elements, another number of blocks, and when k + 1 exchanges
    ///         are under way; nothing was sent then
    void start(Blocks blocks) {
        check(blocks);
        const int slot = slot_of(started_);
        for (int peer = 0; peer < slots_.size(); ++peer) {
            const std::span<const T> block = at(blocks, peer);
            if (peer == slots_.rank()) {
                at(own_, started_ % own_.size()).assign(block.begin(), block.end());
                continue;
            }
            const SlotId id{.window = window_, .peer = peer, .slot = slot};
            if (!block.empty()) std::memcpy(slots_.room(id).data(), block.data(), block.size_bytes());
        }
        for (int peer = 0; peer < slots_.size(); ++peer)  // once all is copied: a put may free what they lie in
            if (peer != slots_.rank())
                slots_.put({.window = window_, .peer = peer, .slot = slot}, started_,
                           static_cast<std::int64_t>(at(blocks, peer).size_bytes()));
        slots_.flush();
        ++started_;
    }
    /// The blocks of the oldest exchange, (rank) from which each comes: valid until the next `start` or `wait`.
    /// \throws BadInput when none is under way, and what a transport's `pause` throws
    [[nodiscard]] Blocks wait(const SourceLocation& where = SourceLocation::current()) {
        if (outstanding() == 0) throw BadInput{"wait without an exchange that is under way: start one first"};
        wait_.label = {.step = "bounded all-to-all", .flight = static_cast<std::uint32_t>(waited_), .where = where};
        wait_.begun = false;
        while (true) {
            slots_.progress(wait_);
            if (!absent()) break;
            slots_.pause(wait_);
        }
        for (int peer = 0; peer < slots_.size(); ++peer) {
            if (peer == slots_.rank()) {
                at(result_, peer) = at(own_, waited_ % own_.size());
                continue;
            }
            const auto bytes = slots_.message(id_of(peer));
            at(result_, peer) = {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
        }
        ++waited_;
        return result_;
    }
    /// Completes all that are under way. Before this is destroyed, so that peers find what they were sent.
    void drain(const SourceLocation& where = SourceLocation::current()) {
        while (outstanding() != 0)
            static_cast<void>(wait(where));
    }

    /// How many exchanges are under way, and how many there were.
    [[nodiscard]] int outstanding() const noexcept { return static_cast<int>(started_ - waited_); }
    [[nodiscard]] std::uint64_t started() const noexcept { return started_; }

  private:
    void check(Blocks blocks) const {
        if (std::ssize(blocks) != slots_.size())
            throw BadInput{concat({blocks.size(), " blocks for ", slots_.size(), " ranks: give one a rank"})};
        for (int peer = 0; peer < slots_.size(); ++peer)
            if (std::ssize(at(blocks, peer)) > most_)
                throw BadInput{concat({"a block of ", at(blocks, peer).size(), " elements, ",
                                       at(blocks, peer).size_bytes(), " bytes, for rank ", peer,
                                       ": slots have room for ", most_, " elements; make the exchange with more"})};
        if (outstanding() == outstanding_exchanges(k_))
            throw BadInput{concat({outstanding(), " exchanges are under way, and ranks may be ", k_,
                                   " apart: call wait for the oldest first"})};
    }
    [[nodiscard]] int slot_of(std::uint64_t exchange) const noexcept {
        return static_cast<int>(exchange % static_cast<std::uint64_t>(exchange_slots(k_)));
    }
    [[nodiscard]] SlotId id_of(int peer) const noexcept {
        return {.window = window_, .peer = peer, .slot = slot_of(waited_)};
    }
    /// Whether some peer's message of the oldest exchange is not there; the wait knows whose.
    [[nodiscard]] bool absent() {
        wait_.peers.clear();
        for (int peer = 0; peer < slots_.size(); ++peer)
            if (peer != slots_.rank() && !slots_.has(id_of(peer), waited_)) wait_.peers.push_back(peer);
        return !wait_.peers.empty();
    }

    OneSidedRef slots_;
    int k_;
    std::int64_t most_;
    int window_ = 0;
    std::uint64_t started_ = 0;
    std::uint64_t waited_ = 0;
    SlotWait wait_;
    std::vector<std::vector<T>> own_;  // (exchange): what stays on this rank
    std::vector<std::span<const T>> result_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
