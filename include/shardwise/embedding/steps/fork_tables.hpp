// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <type_traits>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/lanes/cost_lanes.hpp"
#include "shardwise/embedding/lanes/forms.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/step.hpp"

/// \file
/// Several plans in one layer: each has some of the tables, and all features of those.

namespace shardwise::inline SHARDWISE_ABI::steps {

struct ForkTablesFamily {
    using Sees = boost::mp11::mp_list<const FeaturesByPlan>;
};
struct MergeTablesFamily {};
struct CutTablesFamily {
    using Sees = boost::mp11::mp_list<const FeaturesByPlan>;
};
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, ForkTablesFamily);
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, MergeTablesFamily);
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, CutTablesFamily);

struct ForkTables;
struct MergeTables;
/// Backward, behind the plans: there is nothing to bring together, for ids have no gradient.
struct EndTables {
    using Adjoint = ForkTables;
    template <class... Forms>
    using Out = Outputs;
    using Uses = boost::mp11::mp_list<>;
    using Family = MergeTablesFamily;
    static std::string name() { return "End<table>"; }
};
/// Backward, before the plans: each gets the gradient of its features.
struct CutTables {
    using Adjoint = MergeTables;
    template <class Form>
    using Out = Form;
    using Uses = boost::mp11::mp_list<>;
    using Sees = CutTablesFamily::Sees;
    using Family = CutTablesFamily;
    static std::string name() { return "Cut<table>"; }
};

/// Hands each plan its features: their bags, and the places of their results. Local; copies no number.
struct ForkTables {
    template <class Form>
    using Out = std::enable_if_t<std::is_same_v<Form, Bags>, Bags>;
    using Adjoint = EndTables;
    using Uses = boost::mp11::mp_list<>;
    using Sees = ForkTablesFamily::Sees;
    using Family = ForkTablesFamily;
    static std::string name() { return "Fork<table>"; }
};
/// All results are where they are wanted. Local; does nothing.
struct MergeTables {
    template <class... Forms>
    using Out = std::enable_if_t<(std::is_same_v<Forms, Outputs> && ...), Outputs>;
    using Adjoint = CutTables;
    using Uses = boost::mp11::mp_list<>;
    using Family = MergeTablesFamily;
    static std::string name() { return "Merge<table>"; }
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/steps/fork_tables.ipp"
#endif
