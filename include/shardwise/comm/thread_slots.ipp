// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>

#include "shardwise/comm/thread_slots.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE int ThreadSlots::open(const SlotLayout& layout) {
    detail::check_layout(layout, size());
    auto mine = std::make_shared<detail::SlotMemory>(layout);
    auto lock = state_->lock();
    const std::size_t number = state_->opened[static_cast<std::size_t>(rank())]++;
    const auto opening = [&]() -> detail::OpeningWindow& { return state_->windows[number]; };
    if (state_->windows.size() <= number) state_->windows.resize(number + 1);
    opening().memory.resize(static_cast<std::size_t>(size()));
    opening().memory[static_cast<std::size_t>(rank())] = std::move(mine);
    for (auto& bell : state_->wake)
        bell.ring();
    SlotWait wait{.label = {.step = "open slots"}};
    const auto absent = [&] {
        wait.peers.clear();
        for (int peer = 0; peer < size(); ++peer)
            if (opening().memory[static_cast<std::size_t>(peer)] == nullptr) wait.peers.push_back(peer);
        return !wait.peers.empty();
    };
    while (absent()) {
        wait.seen = bell().rung();
        pause(wait, lock);
    }
    Window window = opening().memory;
    if (++opening().taken == size()) opening().memory.clear();
    lock.unlock();
    for (int peer = 0; peer < size(); ++peer)
        detail::check_agreement(layout, rank(), window[static_cast<std::size_t>(peer)]->layout(), peer);
    return windows_.add(std::make_unique<Window>(std::move(window)));
}

SHARDWISE_INLINE void ThreadSlots::flush() {
    const auto lock = state_->lock();
    for (std::size_t peer = 0; peer < waiting_.size(); ++peer)
        if (waiting_[peer].exchange(false, std::memory_order_acq_rel)) state_->wake[peer].ring();
}

SHARDWISE_INLINE void ThreadSlots::wake() {
    const auto lock = state_->lock();
    bell().ring();
}

SHARDWISE_INLINE void ThreadSlots::pause(SlotWait& wait) {
    auto lock = state_->lock();
    pause(wait, lock);
}

SHARDWISE_INLINE void ThreadSlots::pause(SlotWait& wait, std::unique_lock<std::mutex>& lock) {
    if (!wait.begun) wait.deadline = std::chrono::steady_clock::now() + state_->options.deadline;
    wait.begun = true;
    if (state_->poisoned) throw PeerFailed{state_->culprit, state_->reason};
    if (bell().rung() != wait.seen) return;
    if (wait.idle) {  // nobody misses it, and the world may last long
        static_cast<void>(bell().wait_until(lock, std::chrono::steady_clock::now() + std::chrono::hours{1}, wait.seen));
        return;
    }
    for (const int peer : wait.peers)
        if (state_->ended[static_cast<std::size_t>(peer)])
            throw PeerFailed{peer,
                             concat({"it has ended, while rank ", rank(), " waits for it in ", describe(wait.label)})};
    detail::ThreadWait& mine = state_->waits[static_cast<std::size_t>(rank())];
    mine.active = true;
    mine.label = wait.label;
    mine.peers = wait.peers;
    const bool late = !bell().wait_until(lock, wait.deadline, wait.seen);
    if (late) {
        const std::string text = concat({"rank ", rank(), " waited ", state_->options.deadline.count(), " ms in ",
                                         describe(wait.label), "\n", state_->report()});
        mine.active = false;
        state_->poison(rank(), text);
        throw DeadlinePassed{text};
    }
    mine.active = false;
}

}  // namespace shardwise::inline SHARDWISE_ABI
