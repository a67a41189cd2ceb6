// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "options.hpp"
#include "shardwise/comm/communicator_ref.hpp"

/// \file
/// One run, on one rank.

namespace train_dlrm {

/// Trains, tests, shows and writes what the options ask for. Collective; rank 0 prints.
/// \throws BadInput, PeerFailed, DeadlinePassed
void run(const Options& options, sw::CommunicatorRef comm);

}  // namespace train_dlrm
