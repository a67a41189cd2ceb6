// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <type_traits>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/lanes/cost_lanes.hpp"
#include "shardwise/embedding/lanes/forms.hpp"
#include "shardwise/embedding/lanes/row_tiers.hpp"
#include "shardwise/embedding/lanes/states.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/step.hpp"

/// \file
/// Several plans in one layer: each has all tables, and of each some of the rows, a tier.

namespace shardwise::inline SHARDWISE_ABI::steps {

struct TiersTape;
struct CutTiersTape;
struct ForkTiersFamily {
    using Tapes = boost::mp11::mp_list<TiersTape>;
    using Sees = boost::mp11::mp_list<const FeaturesByPlan, const RowTiers, RowCounts, const WorkMemory>;
};
struct MergeTiersFamily {
    using Tapes = boost::mp11::mp_list<TiersTape>;
    using Sees = boost::mp11::mp_list<const FeaturesByPlan, const RowTiers>;
};
struct CutTiersFamily {
    using Tapes = boost::mp11::mp_list<CutTiersTape>;
    using Sees = boost::mp11::mp_list<const FeaturesByPlan, const RowTiers, const WorkMemory>;
};
struct EndTiersFamily {};
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, ForkTiersFamily);
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, MergeTiersFamily);
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, CutTiersFamily);
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, EndTiersFamily);

struct ForkTiers;
struct MergeTiers;
/// Backward, behind the plans: there is nothing to bring together, for ids have no gradient.
struct EndTiers {
    using Adjoint = ForkTiers;
    template <class... Forms>
    using Out = Outputs;
    using Uses = boost::mp11::mp_list<>;
    using Family = EndTiersFamily;
    static std::string name() { return "End<tier>"; }
};
/// Backward, before the plans: each tier gets the gradient of every bag, and of sequences sees the rows of its ids.
struct CutTiers {
    using Adjoint = MergeTiers;
    template <class Form>
    using Out = Form;
    using Uses = boost::mp11::mp_list<CutTiers>;
    using Sees = CutTiersFamily::Sees;
    using Family = CutTiersFamily;
    using Tape = CutTiersTape;
    static std::string name() { return "Cut<tier>"; }
};

/// Hands each tier the ids of its rows, and a place for what it makes of them: rows of sequences, and the first tier's
/// sums, are written where they are wanted. Checks every id, counts look-ups. Local; two passes over the ids.
struct ForkTiers {
    template <class Form>
    using Out = std::enable_if_t<std::is_same_v<Form, Bags>, Bags>;
    using Adjoint = EndTiers;
    using Uses = boost::mp11::mp_list<ForkTiers>;
    using Sees = ForkTiersFamily::Sees;
    using Family = ForkTiersFamily;
    using Tape = TiersTape;
    static std::string name() { return "Fork<tier>"; }
};
/// Adds the tiers' sums in their order, and divides means once; rows of sequences are where they belong. Local; one
/// pass over the sums of each tier but the first.
struct MergeTiers {
    template <class... Forms>
    using Out = std::enable_if_t<(std::is_same_v<Forms, Outputs> && ...), Outputs>;
    using Adjoint = CutTiers;
    using Uses = boost::mp11::mp_list<ForkTiers>;
    using Sees = MergeTiersFamily::Sees;
    using Family = MergeTiersFamily;
    static std::string name() { return "Merge<tier>"; }
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/steps/fork_tiers.ipp"
#endif
