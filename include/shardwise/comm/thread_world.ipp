// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE const ThreadWorldOptions& ThreadWorld::checked(const ThreadWorldOptions& options) {
    static_cast<void>(Topology::checked(options.topology));
    return options;
}

SHARDWISE_INLINE void ThreadWorld::run_all(const std::function<void(ThreadCommunicator&)>& body) {
    if (state_.poisoned) throw PeerFailed{state_.culprit, "this world has failed before: " + state_.reason};
    const int ranks = topology().ranks();
    std::exception_ptr first;
    int running = ranks;
    std::fill(state_.ended.begin(), state_.ended.end(), false);
    state_.windows.clear();
    state_.channels.resize(1);
    state_.duplicates.assign(state_.ended.size(), 0);
    std::vector<std::thread> threads;
    threads.reserve(static_cast<std::size_t>(ranks));
    const auto run_rank = [&](int rank) {
        std::exception_ptr failure;
        std::string what = "an exception that is no std::exception";
        try {
            ThreadCommunicator comm{state_, rank};
            body(comm);
        } catch (const std::exception& error) {
            failure = std::current_exception();
            what = error.what();
        } catch (...) {
            failure = std::current_exception();
        }
        const std::lock_guard lock{state_.mutex};
        if (failure) {
            if (!first) first = failure;
            if (state_.culprit == rank) first = failure;
            state_.poison(rank, what);
        }
        state_.ended[static_cast<std::size_t>(rank)] = true;
        --running;
        for (auto& w : state_.wake)
            w.ring();
        state_.world_changed.notify_all();
    };
    for (int rank = 0; rank < ranks; ++rank) {
        try {
            threads.emplace_back(run_rank, rank);
        } catch (const std::system_error& error) {
            const std::string what = concat({"rank ", rank, " of ", ranks, " gets no thread"});
            const std::lock_guard lock{state_.mutex};
            if (!state_.poisoned) first = std::make_exception_ptr(std::system_error{error.code(), what});
            state_.poison(rank, what);
            std::fill(state_.ended.begin() + rank, state_.ended.end(), true);
            running -= ranks - rank;
            break;
        }
    }
    {
        std::unique_lock lock{state_.mutex};
        state_.world_changed.wait(lock, [&] { return running == 0 || state_.poisoned; });
        if (!state_.world_changed.wait_for(lock, state_.options.grace, [&] { return running == 0; })) {
            std::fprintf(stderr, "shardwise: rank %d failed (%s), and %lld ms later some ranks have not ended:\n%s",
                         state_.culprit, state_.reason.c_str(), static_cast<long long>(state_.options.grace.count()),
                         state_.report().c_str());
            std::fflush(stderr);
            std::_Exit(3);
        }
    }
    for (auto& thread : threads)
        thread.join();
    if (first) std::rethrow_exception(first);
}

}  // namespace shardwise::inline SHARDWISE_ABI
