// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Relays of sequences that nobody tells how many vectors there are.
// EXPECT: this step cannot follow the one before it: it does not take lanes of this form
// EXPECT_LINE: StepFollows<shardwise:: ExchangeIds<shardwise:: Lookup<false> OwnedIds<shardwise::
#include "shardwise/embedding/compose/plans.hpp"
#include "shardwise/plan/check.hpp"
#include "shardwise/sharding/col.hpp"

namespace sw = shardwise;

#ifndef SHARDWISE_EXPECT_FAIL
constexpr bool told = true;
#else
constexpr bool told = false;
#endif
template <class G, bool ToRelays>
using Hop = sw::steps::ExchangeVectors<G, sw::Fp32, sw::Fp32, ToRelays>;
using Line =
    sw::Plan<sw::steps::Split<sw::Col<>>, sw::steps::ExchangeIds<sw::World, sw::steps::RelaysIn<sw::OneTower, told>>,
             sw::steps::Lookup<false>, Hop<sw::OneTower, true>, Hop<sw::PeersOf<sw::OneTower>, false>,
             sw::steps::Join<sw::Col<>, sw::None>>;

int main() {
    return static_cast<int>(sizeof(sw::FormAfter<sw::steps::Bags, Line>));
}
