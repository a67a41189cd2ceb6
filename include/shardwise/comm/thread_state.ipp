// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
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

SHARDWISE_INLINE bool Doorbell::yield_until_rung(std::uint64_t seen) const {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    for (auto before = begin; rung() == seen && before - begin < std::chrono::microseconds{20};) {
        std::this_thread::yield();
        const auto after = Clock::now();
        if (after - before > std::chrono::milliseconds{1}) return false;
        before = after;
    }
    return true;
}

SHARDWISE_INLINE bool Doorbell::wait_until(std::unique_lock<std::mutex>& lock,
                                           std::chrono::steady_clock::time_point deadline, std::uint64_t seen) {
    if (sleeps_ > 0) {
        --sleeps_;
    } else {
        lock.unlock();
        const bool soon = yield_until_rung(seen);
        lock_soon(lock);
        if (!soon) sleeps_ = 100;
    }
    return rung() != seen || sleeping_.wait_until(lock, deadline) == std::cv_status::no_timeout;
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
