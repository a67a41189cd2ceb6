// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A second translation unit: whatever the headers define must be allowed to stand twice in one program.
#include "shardwise/shardwise.hpp"

int other();

int other() {
    return 0;
}
