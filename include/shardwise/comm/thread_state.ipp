// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <chrono>
#include <ctime>
#include <thread>

#include "shardwise/comm/thread_state.hpp"
#include "shardwise/core/text.hpp"

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

SHARDWISE_INLINE void lock_soon(std::unique_lock<std::mutex>& lock) {
    for (int tries = 0; tries < 500; ++tries)
        if (lock.try_lock()) return;
    lock.lock();
}

SHARDWISE_INLINE void Doorbell::ring() {
    rung_.fetch_add(1, std::memory_order_release);
    sleeping_.notify_all();
}

SHARDWISE_INLINE Doorbell::Yields Doorbell::yield_until_rung(std::uint64_t seen, bool measure) const {
    using Clock = std::chrono::steady_clock;
    using Seconds = std::chrono::duration<double>;
    const std::clock_t used_before = measure ? std::clock() : 0;
    const auto begin = Clock::now();
    for (auto before = begin; rung() == seen && before - begin < std::chrono::microseconds{20};) {
        std::this_thread::yield();
        const auto after = Clock::now();
        if (after - before > std::chrono::milliseconds{1}) {
            if (!measure) return Yields::late;
            // While ranks of this process compute in turns, it uses all processors, but for rounding.
            const double used = static_cast<double>(std::clock() - used_before) / CLOCKS_PER_SEC;
            const double others = std::thread::hardware_concurrency() - used / Seconds{after - begin}.count();
            return others < 0.75 ? Yields::late : Yields::lost;
        }
        before = after;
    }
    return Yields::soon;
}

SHARDWISE_INLINE bool Doorbell::wait_until(std::unique_lock<std::mutex>& lock,
                                           std::chrono::steady_clock::time_point deadline, std::uint64_t seen) {
    if (sleeps_left_ > 0) {
        --sleeps_left_;
    } else {
        const bool measure = measures_;
        lock.unlock();
        const Yields yields = yield_until_rung(seen, measure);
        lock_soon(lock);
        measures_ = measures_ || yields != Yields::soon;
        if (yields == Yields::lost) sleeps_left_ = 100;
    }
    return rung() != seen || sleeping_.wait_until(lock, deadline) == std::cv_status::no_timeout || rung() != seen;
}

SHARDWISE_INLINE void ThreadWorldState::poison(int rank, const std::string& why) {
    if (poisoned) return;
    poisoned = true;
    culprit = rank;
    reason = why;
    for (auto& w : wake)
        w.ring();
    world_changed.notify_all();
}

SHARDWISE_INLINE std::string ThreadWorldState::report() const {
    std::string text;
    for (std::size_t r = 0; r < waits.size(); ++r) {
        text += "  rank " + std::to_string(r);
        if (ended[r]) {
            text += " has ended\n";
        } else if (!waits[r].active) {
            text += " is in no exchange\n";
        } else {
            text += " waits for rank";
            for (const int peer : waits[r].peers)
                text += " " + std::to_string(peer);
            text += concat({" in ", describe_with_place(waits[r].label), "\n"});
        }
    }
    return text;
}

}  // namespace detail

}  // namespace shardwise::inline SHARDWISE_ABI
