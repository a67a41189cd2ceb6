// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A step whose adjoint forks: backward, its plans would run on lanes of nobody.
// EXPECT: the adjoint of a step is a plan without Together
#include "shardwise/embedding/compose/plans.hpp"
#include "shardwise/plan/program.hpp"

namespace sw = shardwise;

struct Forking {
#ifndef SHARDWISE_EXPECT_FAIL
    using Adjoint = sw::Plan<sw::steps::CutTowers>;
#else
    using Adjoint =
        sw::Plan<sw::Together<sw::steps::ForkTables, sw::steps::MergeTables, sw::Plan<sw::steps::CutTowers>>>;
#endif
    using Uses = boost::mp11::mp_list<>;
    using Family = sw::steps::NothingFamily;
    static std::string name() {
        return "Forking";
    }
};

int main() {
    return static_cast<int>(sw::make_program<sw::steps::EmbeddingDomain, sw::Plan<Forking>>().forward);
}
