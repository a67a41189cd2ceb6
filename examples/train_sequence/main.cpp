// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "program.hpp"

/// \file
/// Trains a sequence model.

int main(int argc, char** argv) {
    return train_dlrm::run_program("train_sequence", argc, argv);
}
