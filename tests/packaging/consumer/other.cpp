// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A second translation unit: whatever the headers define must be allowed to stand twice in one program.
#include <cstdint>

#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/shardwise.hpp"

std::int64_t bytes_elsewhere();

std::int64_t bytes_elsewhere() {
    return shardwise::draw_layer({.hosts = 1, .ranks_per_host = 2}, {{.name = "user", .rows = 10, .dim = 4}}, {})
        .static_bytes(0);
}
