// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// EXPECT: a step that keeps a tape may stand only once in a plan, since tapes are found by type
#include "shardwise/embedding/compose/plans.hpp"
#include "shardwise/plan/frame.hpp"
#include "shardwise/plan/program.hpp"

namespace sw = shardwise;

template <int Tag>
using Numbered = sw::steps::Agree<std::conditional_t<Tag == 0, sw::World, sw::OneHost>>;
#ifndef SHARDWISE_EXPECT_FAIL
using Line = sw::Plan<Numbered<0>, Numbered<1>>;
#else
using Line = sw::Plan<Numbered<0>, Numbered<0>>;
#endif

int main() {
    const sw::Program program = sw::make_program<sw::steps::EmbeddingDomain, Line>();
    sw::Frame<sw::steps::Lanes> frame{program};
    return static_cast<int>(program.forward + frame.lanes().ids.size());
}
