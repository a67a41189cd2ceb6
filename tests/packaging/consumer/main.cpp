// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <cstdint>

#include "shardwise/shardwise.hpp"

std::int64_t bytes_elsewhere();

int main() {
    const auto here = shardwise::EmbeddingLayer<>::blueprint({.hosts = 1, .ranks_per_host = 2},
                                                             {{.name = "user", .rows = 10, .dim = 4}});
    return here.static_bytes(0) > 0 && here.static_bytes(0) == bytes_elsewhere() ? 0 : 1;
}
