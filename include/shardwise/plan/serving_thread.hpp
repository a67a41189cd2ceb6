// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>

#include "shardwise/comm/one_sided_ref.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/plan/flight_server.hpp"

/// \file
/// Answers other ranks while this one computes.

namespace shardwise::inline SHARDWISE_ABI {

/// A thread that answers whenever somebody asks, and sleeps otherwise. What it throws, the rank's next call throws.
class ServingThread {
  public:
    /// \param slots  that threads may use at the same time; outlives this, as does the server, which is this thread's
    ServingThread(OneSidedRef slots, FlightServer& server);
    ServingThread(const ServingThread&) = delete;
    ServingThread& operator=(const ServingThread&) = delete;
    ~ServingThread();

    /// This rank has started so many flights itself.
    void started(std::uint64_t flights);
    /// \throws what has ended the thread
    void check();

  private:
    void run();

    OneSidedRef slots_;
    FlightServer* server_;
    std::atomic<std::uint64_t> started_{0};
    std::atomic<bool> ends_{false};
    std::atomic<bool> failed_{false};
    std::mutex mutex_;
    std::exception_ptr failure_;
    std::thread thread_;
};

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/plan/serving_thread.ipp"
#endif
