// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <cstdint>

#include "shardwise/shardwise.hpp"

#if TWO_UNITS
std::int64_t bytes_elsewhere();
#endif

int main() {
    const auto here = shardwise::EmbeddingLayer<>::blueprint({.hosts = 1, .ranks_per_host = 2},
                                                             {{.name = "user", .rows = 10, .dim = 4}});
#if TWO_UNITS
    if (here.static_bytes(0) != bytes_elsewhere()) return 1;
#endif
    return here.static_bytes(0) > 0 ? 0 : 1;
}
