// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// The whole program but its name.

namespace train_dlrm {

/// Runs the trainer. \param name  train_dlrm, train_dcn or train_sequence: says which model it trains unless told
/// otherwise \returns the exit status
int run_program(const char* name, int argc, char** argv);

}  // namespace train_dlrm
