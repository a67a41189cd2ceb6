// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stop_signal.hpp"

#include <atomic>
#include <csignal>

namespace train_dlrm {

namespace {

std::atomic<int> came{0};
static_assert(std::atomic<int>::is_always_lock_free);

void note(int signal) {
    came = signal;
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
}

}  // namespace

void catch_stop_signals() {
    came = 0;
    for (const int signal : {SIGINT, SIGTERM}) {
        struct sigaction action {};
        sigaction(signal, nullptr, &action);
        if (action.sa_handler == SIG_IGN) continue;  // as whoever has started this wants it
        action = {};
        action.sa_handler = note;
        action.sa_flags = SA_RESTART;
        sigemptyset(&action.sa_mask);
        sigaction(signal, &action, nullptr);
    }
}

int stop_signal() noexcept {
    return came;
}

const char* signal_name(int signal) noexcept {
    return signal == SIGTERM ? "SIGTERM" : "SIGINT";
}

}  // namespace train_dlrm
