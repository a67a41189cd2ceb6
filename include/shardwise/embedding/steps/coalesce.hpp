// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <type_traits>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/kernels/fold.hpp"
#include "shardwise/embedding/lanes/coalesced.hpp"
#include "shardwise/embedding/lanes/cost_lanes.hpp"
#include "shardwise/embedding/lanes/forms.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/step.hpp"

/// \file
/// Each id once: around a plan of sequences, one list of distinct ids a table and batch. (SCARS, section II.A)

namespace shardwise::inline SHARDWISE_ABI::steps {

struct CoalesceTape;
struct DistinctSumsTape;
struct CoalesceFamily {
    using Tapes = boost::mp11::mp_list<CoalesceTape>;
    using Sees = boost::mp11::mp_list<const CoalescedTables, RequestCounts, const WorkMemory>;
};
struct ExpandFamily {
    using Tapes = boost::mp11::mp_list<CoalesceTape>;
    using Sees = boost::mp11::mp_list<const CoalescedTables>;
};
struct SumByUniqueFamily {
    using Tapes = boost::mp11::mp_list<DistinctSumsTape, CoalesceTape>;
    using Sees = boost::mp11::mp_list<const CoalescedTables, const OrderTraits, const WorkMemory>;
};
struct EndCoalescedFamily {};
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, CoalesceFamily);
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, ExpandFamily);
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, SumByUniqueFamily);
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, EndCoalescedFamily);

struct Coalesce;
template <class Pooling>
struct Expand;

/// Backward, behind the plan: there is nothing to bring together, for ids have no gradient.
struct EndCoalesced {
    using Adjoint = Coalesce;
    template <class... Forms>
    using Out = Outputs;
    using Uses = boost::mp11::mp_list<>;
    using Family = EndCoalescedFamily;
    static std::string name() { return "End<coalesced>"; }
};
/// Backward, before the plan: the gradient of each distinct row, summed over this rank's bags in the order of samples,
/// then features, then ids; in double where the order of sums is. Local; one pass over the gradients of all bags.
template <class Expanded>
struct SumByUnique {
    using Adjoint = Expanded;
    template <class Form>
    using Out = Form;
    using Uses = boost::mp11::mp_list<SumByUnique, Coalesce>;
    using Sees = SumByUniqueFamily::Sees;
    using Family = SumByUniqueFamily;
    using Tape = DistinctSumsTape;
    static std::string name() { return "SumByUnique"; }
};

/// Hands the plan the distinct ids of each table, as one sequence of one sample, and a place for their rows. Keeps
/// which of them each id of a bag is, and weights. Checks every id, counts look-ups. Local; two passes over the ids.
struct Coalesce {
    template <class Form>
    using Out = std::enable_if_t<std::is_same_v<Form, Bags>, Bags>;
    using Adjoint = EndCoalesced;
    using Uses = boost::mp11::mp_list<Coalesce>;
    using Sees = CoalesceFamily::Sees;
    using Family = CoalesceFamily;
    using Tape = CoalesceTape;
    static std::string name() { return "Coalesce"; }
};
/// Makes the bags of the rows that came home: sums in the order of their ids, means, or sequences. Local; one pass over
/// the ids.
template <class Pooling>
struct Expand {
    template <class... Forms>
    using Out = std::enable_if_t<(std::is_same_v<Forms, Outputs> && ...), Outputs>;
    using Adjoint = SumByUnique<Expand>;
    using Uses = boost::mp11::mp_list<Coalesce>;
    using Sees = ExpandFamily::Sees;
    using Family = ExpandFamily;
    static std::string name() { return concat({"Expand<", Pooling::name, ">"}); }
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/steps/coalesce.ipp"
#endif
