// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "shardwise/comm/communicator.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// What the threads of a ThreadWorld share: a mailbox for each pair of ranks, and who waits for whom.

namespace shardwise::inline SHARDWISE_ABI {

/// What a ThreadWorld is made of.
struct ThreadWorldOptions {
    Topology topology;
    /// How long a wait may last before it ends with the report of who waits for whom.
    std::chrono::milliseconds deadline = std::chrono::minutes{5};
    /// How long after a failure a thread that does not end may go on before it ends the process.
    std::chrono::milliseconds grace = std::chrono::seconds{10};
};

namespace detail {

/// One message on its way between two threads: the receiver copies it out of the sender's memory.
struct Parcel {
    Parcel(std::span<const std::byte> b, const Label& l) : bytes{b}, label{l} {}
    std::span<const std::byte> bytes;
    Label label;
    bool busy = false;   // being copied
    bool taken = false;  // copied, or withdrawn
};

/// The messages of one ordered pair of ranks. The n-th posted meets the n-th expected.
struct Mailbox {
    std::uint64_t base = 0;  // number of the first parcel kept
    std::vector<Parcel> parcels;
    std::uint64_t expected = 0;  // receives posted so far; used by the receiver alone

    [[nodiscard]] Parcel* find(std::uint64_t number) {
        if (number < base || number - base >= parcels.size()) return nullptr;
        return &parcels[number - base];
    }
    [[nodiscard]] bool taken(std::uint64_t number) { return number < base || parcels[number - base].taken; }
    void drop_taken() {
        const auto end = std::find_if(parcels.begin(), parcels.end(), [](const Parcel& p) { return !p.taken; });
        base += static_cast<std::uint64_t>(end - parcels.begin());
        parcels.erase(parcels.begin(), end);
    }
};

/// Locks. What the mutex guards takes far less time than going to sleep and being woken: tries a little first.
void lock_soon(std::unique_lock<std::mutex>& lock);

/// Where one rank waits until another has something for it.
class Doorbell {
  public:
    /// Call with the mutex held.
    void ring();
    /// How often it has rung. What was written before a ring that is counted here is there to be read.
    [[nodiscard]] std::uint64_t rung() const noexcept { return rung_.load(std::memory_order_acquire); }
    /// Waits until it has rung more than `seen` times, with the mutex unlocked: yields the processor to other threads
    /// for about 20 microseconds, which is what waking a thread takes, and then sleeps. Where a yield gave up a turn to
    /// another program, the next hundred waits sleep at once: a turn is as long as about a hundred wake-ups.
    /// \returns false when it became late
    bool wait_until(std::unique_lock<std::mutex>& lock, std::chrono::steady_clock::time_point deadline,
                    std::uint64_t seen);
    /// Until it rings again.
    bool wait_until(std::unique_lock<std::mutex>& lock, std::chrono::steady_clock::time_point deadline) {
        return wait_until(lock, deadline, rung());
    }

  private:
    enum class Yields : std::uint8_t {
        soon,  ///< all came back within a millisecond
        late,  ///< one did not
        lost,  ///< one did not, and meanwhile other programs had a processor
    };
    /// \param measure  whether to tell `late` from `lost`, which takes a system call more
    [[nodiscard]] Yields yield_until_rung(std::uint64_t seen, bool measure) const;

    std::atomic<std::uint64_t> rung_{0};
    std::condition_variable sleeping_;
    bool measures_ = false;  // with the mutex held, as below: some yield was late
    int sleeps_left_ = 0;    // so many waits do not yield
};

class SlotMemory;
/// A window of slots that ranks are opening.
struct OpeningWindow {
    std::vector<std::shared_ptr<SlotMemory>> memory;  // (rank)
    int taken = 0;                                    // by so many ranks
};

struct ThreadWait {
    bool active = false;
    Label label;
    std::vector<int> peers;
};

/// What the threads of a world share; everything is guarded by `mutex`.
struct ThreadWorldState {
    /// Times beyond a year are a year: a clock that far ahead would overflow.
    static constexpr std::chrono::milliseconds longest = std::chrono::hours{24 * 365};

    explicit ThreadWorldState(const ThreadWorldOptions& o)
        : options{.topology = o.topology,
                  .deadline = std::min(o.deadline, longest),
                  .grace = std::min(o.grace, longest)},
          channels(1, Mailboxes(pairs())),
          wake(static_cast<std::size_t>(o.topology.ranks())),
          waits(static_cast<std::size_t>(o.topology.ranks())),
          ended(static_cast<std::size_t>(o.topology.ranks()), false),
          duplicates(ended.size()),
          opened(ended.size()) {
        for (ThreadWait& wait : waits)
            wait.peers.reserve(waits.size());
    }

    using Mailboxes = std::vector<Mailbox>;  // (from, to)

    ThreadWorldOptions options;
    std::mutex mutex;
    std::deque<Mailboxes> channels;  // of the communicator that ranks run with, and of its duplicates
    std::vector<Doorbell> wake;
    std::condition_variable world_changed;
    std::vector<ThreadWait> waits;
    std::vector<bool> ended;
    std::vector<std::size_t> duplicates;  // (rank): so many it has made
    std::vector<std::size_t> opened;      // (rank): so many windows of slots, of whichever communicator
    std::vector<OpeningWindow> windows;   // in the order in which each rank opens them
    bool poisoned = false;
    int culprit = -1;
    std::string reason;

    [[nodiscard]] std::unique_lock<std::mutex> lock() {
        std::unique_lock held{mutex, std::defer_lock};
        lock_soon(held);
        return held;
    }
    [[nodiscard]] std::size_t pairs() const noexcept {
        return static_cast<std::size_t>(options.topology.ranks()) * static_cast<std::size_t>(options.topology.ranks());
    }
    Mailbox& box(std::size_t channel, int from, int to) {
        return channels[channel][static_cast<std::size_t>(from) * static_cast<std::size_t>(options.topology.ranks()) +
                                 static_cast<std::size_t>(to)];
    }
    void poison(int rank, const std::string& why);
    /// A line a rank: what it waits for. Call with the mutex held.
    [[nodiscard]] std::string report() const;
};

}  // namespace detail

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/comm/thread_state.ipp"
#endif
