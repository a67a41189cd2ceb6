// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <type_traits>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/lanes/cost_lanes.hpp"
#include "shardwise/embedding/steps/reduce_rows.hpp"
#include "shardwise/embedding/steps/row_norms.hpp"
#include "shardwise/embedding/steps/update.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/step.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// Where rows join the line: steps that do nothing forward, and learn backward.

namespace shardwise::inline SHARDWISE_ABI::steps {

struct NothingFamily {};
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, NothingFamily);

/// The parameters that the lookup reads and the update writes. Forward it does nothing; its adjoint is the update.
/// \tparam NormsIn  the group in which the shards of a row exchange its norm; void: rows are whole, or the rule needs
/// none
template <class Rule, class Order, class NormsIn = void>
struct Parameters {
    template <class Form>
    using Out = Form;
    using Adjoint = Plan<RowNorms<NormsIn>, Update<Rule, Order>>;
    using Uses = boost::mp11::mp_list<>;
    using Family = NothingFamily;
    static std::string name() { return concat({"Parameters<", std::string{Rule::name}, ">"}); }
};
/// Without norms of rows.
template <class Rule, class Order>
struct Parameters<Rule, Order, void> {
    template <class Form>
    using Out = Form;
    using Adjoint = Plan<Update<Rule, Order>>;
    using Uses = boost::mp11::mp_list<>;
    using Family = NothingFamily;
    static std::string name() { return concat({"Parameters<", std::string{Rule::name}, ">"}); }
};

/// Every member of G holds the rows: forward nothing, backward the sum over the members.
template <class G, class Wire, class Order>
struct Replicate {
    template <class Form>
    using Out = Form;
    using Adjoint = typename ReduceRows<G, Wire, Order>::type;
    using Uses = boost::mp11::mp_list<>;
    using Family = NothingFamily;
    static std::string name() { return concat({"Replicate<", G::name(), ">"}); }
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/steps/parameters.ipp"
#endif
