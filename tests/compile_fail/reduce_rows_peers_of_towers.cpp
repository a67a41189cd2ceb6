// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// EXPECT: rows are reduced over World, OneHost or Peers: sums over any other group are no level of the tree
#include "shardwise/embedding/compose/plans.hpp"

namespace sw = shardwise;

#ifndef SHARDWISE_EXPECT_FAIL
using Over = sw::World;
#else
using Over = sw::PeersOf<sw::Hosts<2>>;
#endif
using Line =
    sw::Plan<sw::steps::Split<sw::Row>, sw::steps::Replicate<Over, sw::Fp32, sw::Tree>, sw::steps::Lookup<true>>;

int main() {
    return static_cast<int>(sizeof(sw::Adjoint<Line>));
}
