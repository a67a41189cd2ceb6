// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "shardwise/comm/communicator.hpp"
#include "shardwise/core/config.hpp"

/// \file
/// What bounded lag needs of a transport: slots in a rank's memory that other ranks write without it.
///
/// A *window* gives every ordered pair of ranks the same number of slots. The sender packs a message into `room`, and
/// `put` makes it leave under a *tag* that both sides know, such as the number of an iteration; the receiver looks for
/// that tag, and reads the message where it lies. Nobody acknowledges and nobody waits in a put: that a slot is not
/// written before it was read is the protocol's business (comm/slot_counts.hpp). A tag, unlike a count of arrivals,
/// asks nothing of the order in which messages of a pair arrive.

namespace shardwise::inline SHARDWISE_ABI {

/// How many slots each ordered pair of ranks has, and what a message may have.
struct SlotLayout {
    static constexpr std::int64_t line = 64;  ///< bytes that slots begin at, and that a tag takes

    int slots = 1;                   ///< of each pair
    std::vector<std::int64_t> from;  ///< (rank): bytes at most of a message from it; 0: none comes
    std::vector<std::int64_t> to;    ///< (rank): the same of what leaves; that rank says so as well

    static constexpr std::int64_t too_many = std::numeric_limits<std::int64_t>::max();  ///< bytes: no such memory

    /// What a slot for so many bytes takes.
    [[nodiscard]] static constexpr std::int64_t bytes_of(std::int64_t message) noexcept {
        if (message > too_many - 2 * line) return too_many;
        return message == 0 ? 0 : line + (message + line - 1) / line * line;
    }
    /// What the slots of this rank take, tags included; too_many where that does not fit a number.
    [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_of(from); }
    /// The same of what leaves.
    [[nodiscard]] std::int64_t bytes_leaving() const noexcept { return bytes_of(to); }

  private:
    [[nodiscard]] std::int64_t bytes_of(const std::vector<std::int64_t>& messages) const noexcept {
        std::int64_t sum = 0;
        for (const std::int64_t most : messages) {
            const std::int64_t each = bytes_of(most);
            if (each != 0 && slots > (too_many - sum) / each) return too_many;
            sum += slots * each;
        }
        return sum;
    }
};

/// One slot of a window, among those that this rank and a peer have in one direction.
struct SlotId {
    int window = 0;
    int peer = 0;
    int slot = 0;
};

/// A wait for slots to be written: a loop of `progress`, a look at what it waits for, and `pause`.
struct SlotWait {
    Label label = {};             ///< in errors and reports
    std::vector<int> peers = {};  ///< that are waited for
    bool idle = false;            ///< for whatever anybody may put: nobody is missed, and no wait is too long
    int idled = 0;                ///< pauses since something was found to do; the longer, the more seldom a poll
    // the transport's
    std::uint64_t seen = 0;
    bool begun = false;
    std::chrono::steady_clock::time_point deadline = {};
};

namespace detail {

/// Times beyond a year are a year: a clock that far ahead would overflow.
[[nodiscard]] inline std::chrono::steady_clock::time_point deadline_from_now(std::chrono::milliseconds wait) {
    constexpr std::chrono::milliseconds longest = std::chrono::hours{24 * 365};
    return std::chrono::steady_clock::now() + (wait < longest ? wait : longest);
}

}  // namespace detail

/// Slots of all ranks. `open` is collective, nothing else is; what is put by one thread of a rank may be looked for by
/// another.
///
/// `open` throws Mismatch where ranks disagree on slots or sizes. `pause` gives the processor to others until something
/// may have been written since the last `progress` of that wait, or another thread of this rank has called `wake`; it
/// throws PeerFailed once a peer has failed or one that is waited for has ended, and DeadlinePassed when the wait
/// becomes too long. `any_thread` says whether other threads of a rank may put, look for and read messages while one
/// does so or opens a window, no two of them in one slot. Windows stay until the slots end.
template <class S>
concept OneSided = Ranked<S> && requires(S& slots, const SlotLayout& layout, const SlotId& id, std::uint64_t tag,
                                         std::int64_t bytes, SlotWait& wait) {
    { slots.open(layout) } -> std::same_as<int>;
    { slots.room(id) } -> std::same_as<std::span<std::byte>>;
    { slots.put(id, tag, bytes) } -> std::same_as<void>;
    { slots.flush() } -> std::same_as<void>;
    { slots.has(id, tag) } -> std::same_as<bool>;
    { slots.message(id) } -> std::same_as<std::span<const std::byte>>;
    { slots.progress(wait) } -> std::same_as<void>;
    { slots.pause(wait) } -> std::same_as<void>;
    { slots.wake() } -> std::same_as<void>;
    { slots.any_thread() } -> std::same_as<bool>;
};

namespace detail {

/// \throws BadInput for a layout that is none of so many ranks
void check_layout(const SlotLayout& layout, int ranks);
/// \throws Mismatch where two ranks do not mean the same slots
void check_agreement(const SlotLayout& mine, int rank, const SlotLayout& theirs, int peer);

}  // namespace detail

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/comm/one_sided.ipp"
#endif
