// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/plan/serving_thread.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE ServingThread::ServingThread(OneSidedRef slots, FlightServer& server)
    : slots_{slots}, server_{&server}, thread_{[this] { run(); }} {}

SHARDWISE_INLINE ServingThread::~ServingThread() {
    ends_ = true;
    slots_.wake();
    thread_.join();
}

SHARDWISE_INLINE void ServingThread::started(std::uint64_t flights) {
    started_ = flights;
    slots_.wake();
}

SHARDWISE_INLINE void ServingThread::check() {
    if (!failed_) return;
    const std::lock_guard lock{mutex_};
    std::rethrow_exception(failure_);
}

SHARDWISE_INLINE void ServingThread::run() {
    try {
        SlotWait wait{.label = {.step = "bounded lag: answers"}, .idle = true};
        while (true) {
            slots_.progress(wait);
            if (ends_) return;
            if (server_->serve(started_)) {
                wait.idled = 0;
                slots_.wake();  // a drain waits for that
            } else {
                slots_.pause(wait);
            }
        }
    } catch (...) {
        const std::lock_guard lock{mutex_};
        failure_ = std::current_exception();
        failed_ = true;
    }
    slots_.wake();
}

}  // namespace shardwise::inline SHARDWISE_ABI
