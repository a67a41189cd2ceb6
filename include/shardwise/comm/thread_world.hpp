// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <functional>

#include "shardwise/comm/thread_communicator.hpp"
#include "shardwise/comm/thread_state.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// Ranks as threads of one process, with a pretended topology: the reference communicator, and the embedded default.

namespace shardwise::inline SHARDWISE_ABI {

/// A world of threads. `run` may be called several times; a world that failed cannot be run again.
class ThreadWorld {
  public:
    /// A world with the default options. \throws BadInput as the other
    explicit ThreadWorld(Topology topology) : ThreadWorld{ThreadWorldOptions{.topology = topology}} {}
    /// A world of these hosts and ranks.
    /// \throws BadInput for a topology without hosts or ranks, or towers that do not divide the hosts
    explicit ThreadWorld(const ThreadWorldOptions& options) : state_{checked(options)} {}

    /// The hosts and ranks that the threads pretend to be.
    [[nodiscard]] Topology topology() const noexcept { return state_.options.topology; }

    /// Runs `body(ThreadCommunicator&)` on every rank, each on a thread of its own, and waits for all of them.
    ///
    /// When a rank throws, the waits of the others end with PeerFailed, and `run` rethrows the first rank's exception.
    /// A thread that is still stuck after the grace time ends the process with a report and status 3.
    /// \throws PeerFailed when an earlier run failed
    /// \throws std::system_error where a rank gets no thread
    template <class Body>
    void run(Body body) {
        run_all([&body](ThreadCommunicator& comm) { body(comm); });
    }

  private:
    void run_all(const std::function<void(ThreadCommunicator&)>& body);
    static const ThreadWorldOptions& checked(const ThreadWorldOptions& options);

    detail::ThreadWorldState state_;
};

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/comm/thread_world.ipp"
#endif
