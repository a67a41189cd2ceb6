// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// EXPECT: this step cannot follow the one before it: it does not take lanes of this form
// EXPECT_LINE: StepFollows<shardwise:: Split<shardwise:: Join<shardwise:: ShardIds<shardwise::
#include "shardwise/embedding/compose/plans.hpp"
#include "shardwise/plan/check.hpp"

namespace sw = shardwise;

#ifndef SHARDWISE_EXPECT_FAIL
using Rule = sw::RowwiseAdagrad<>;
using Line = sw::Plan<sw::steps::Split<sw::Row>, sw::steps::ExchangeIds<>, sw::steps::Parameters<Rule, sw::Tree>,
                      sw::steps::Lookup<true>, sw::steps::ExchangeVectors<sw::World, sw::Fp32, sw::Fp32>,
                      sw::steps::Join<sw::Row, sw::Sum>>;
#else
using Line = sw::Plan<sw::steps::Split<sw::Row>, sw::steps::Join<sw::Row, sw::Sum>>;
#endif

int main() {
    return static_cast<int>(sizeof(sw::FormAfter<sw::steps::Bags, Line>));
}
