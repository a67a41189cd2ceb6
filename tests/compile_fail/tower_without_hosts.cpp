// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// EXPECT: a tower has at least one host
#include "shardwise/topology/groups.hpp"

#ifndef SHARDWISE_EXPECT_FAIL
constexpr int hosts = 2;
#else
constexpr int hosts = 0;
#endif

int main() {
    return shardwise::Hosts<hosts>::of({.hosts = 2, .ranks_per_host = 2}).index(3);
}
