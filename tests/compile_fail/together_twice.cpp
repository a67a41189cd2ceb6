// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// EXPECT: a plan has at most one Together
#include "shardwise/embedding/compose/plans.hpp"
#include "shardwise/plan/program.hpp"

namespace sw = shardwise;

template <class Pooling>
using Branch = sw::Together<sw::Plan<sw::Lookup<Pooling>>>;
#ifndef SHARDWISE_EXPECT_FAIL
using Line = sw::Plan<Branch<sw::Sum>>;
#else
using Line = sw::Plan<Branch<sw::Sum>, Branch<sw::Mean>>;
#endif

int main() {
    return static_cast<int>(sw::make_program<sw::EmbeddingDomain, Line>().forward);
}
