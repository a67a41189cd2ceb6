// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "options.hpp"
#include "shardwise/comm/communicator_ref.hpp"

/// \file
/// One run, on one rank.

namespace train_dlrm {

/// Trains, tests, shows and writes what the options ask for; until some rank gets SIGINT or SIGTERM. Collective; rank 0
/// prints.
/// \returns that signal, the same on all ranks; 0: it came to its end
/// \throws BadInput, PeerFailed, DeadlinePassed
[[nodiscard]] int run(const Options& options, sw::CommunicatorRef comm);

}  // namespace train_dlrm
