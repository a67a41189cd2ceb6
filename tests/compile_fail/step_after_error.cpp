// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A step that does not fit in the middle of a plan: the steps behind it add no errors of their own.
// EXPECT: this step cannot follow the one before it: it does not take lanes of this form
// EXPECT_LINE: StepFollows<shardwise:: ExchangeIds ExchangeVectors<shardwise:: OwnedIds<shardwise::
#include "shardwise/embedding/compose/plans.hpp"
#include "shardwise/plan/check.hpp"

namespace sw = shardwise;

#ifndef SHARDWISE_EXPECT_FAIL
using Middle = sw::Plan<sw::steps::Lookup<true>>;
#else
using Middle = sw::Plan<>;
#endif
using Line =
    sw::Splice<sw::Plan<sw::steps::Split<sw::Row>, sw::steps::ExchangeIds<>>, Middle,
               sw::Plan<sw::steps::ExchangeVectors<sw::World, sw::Fp32, sw::Bf16>, sw::steps::Join<sw::Row, sw::Mean>>>;

int main() {
    return static_cast<int>(sizeof(sw::FormAfter<sw::steps::Bags, Line>));
}
