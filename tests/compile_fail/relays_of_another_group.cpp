// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A sum of the wrong level: parts that met in a tower are summed by host.
// EXPECT: this step cannot follow the one before it: it does not take lanes of this form
// EXPECT_LINE: StepFollows<shardwise:: ExchangeVectors<shardwise:: SumShards<shardwise:: RelayedVectors<shardwise::
#include "shardwise/embedding/compose/plans.hpp"
#include "shardwise/plan/check.hpp"

namespace sw = shardwise;

#ifndef SHARDWISE_EXPECT_FAIL
using Met = sw::OneTower;
#else
using Met = sw::OneHost;
#endif
template <class G, bool ToRelays>
using Hop = sw::steps::ExchangeVectors<G, sw::Fp32, sw::Fp32, ToRelays>;
using Line =
    sw::Plan<sw::steps::Split<sw::Row>, sw::steps::ExchangeIds<sw::World, sw::steps::RelaysIn<sw::OneTower, false>>,
             sw::steps::Lookup<true>, Hop<sw::OneTower, true>, sw::steps::SumShards<Met>,
             Hop<sw::PeersOf<sw::OneTower>, false>, sw::steps::Join<sw::Row, sw::Sum>>;

int main() {
    return static_cast<int>(sizeof(sw::FormAfter<sw::steps::Bags, Line>));
}
