// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// EXPECT: plans that run together end in lanes of forms that the merge behind them takes
#include "shardwise/embedding/compose/plans.hpp"
#include "shardwise/plan/check.hpp"
#include "shardwise/sharding/dp.hpp"

namespace sw = shardwise;

using Complete = sw::Plan<sw::steps::Split<sw::DP>, sw::steps::Lookup<true>, sw::steps::Join<sw::DP, sw::Sum>>;
#ifndef SHARDWISE_EXPECT_FAIL
using Other = Complete;
#else
using Other = sw::Plan<sw::steps::Split<sw::DP>, sw::steps::Lookup<true>>;
#endif

int main() {
    return static_cast<int>(
        sizeof(sw::FormAfter<sw::steps::Bags,
                             sw::Plan<sw::Together<sw::steps::ForkTables, sw::steps::MergeTables, Complete, Other>>>));
}
