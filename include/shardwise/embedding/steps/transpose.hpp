// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <type_traits>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/lanes/cost_lanes.hpp"
#include "shardwise/embedding/lanes/forms.hpp"
#include "shardwise/embedding/tables/store.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/step.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// From one block a feature and shard to one vector a sample, where a tower's module takes them.

namespace shardwise::inline SHARDWISE_ABI::steps {

struct TransposeTape;
struct TransposeFamily {
    using Tapes = boost::mp11::mp_list<TransposeTape>;
    using Sees = boost::mp11::mp_list<const Store, const Placement, const TowerModules, const WorkMemory>;
};
struct CutSamplesFamily {
    using Tapes = boost::mp11::mp_list<TransposeTape>;
};
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, TransposeFamily);
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, CutSamplesFamily);

/// The adjoint of Transpose: each block gets its columns of the gradient. Local; copies no number.
template <class Transposed>
struct CutSamples {
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<Transposed>;
    using Family = CutSamplesFamily;
    static std::string name() { return "CutSamples"; }
};

/// At a relay in G: the vectors of all features of the tower become one block a source, sample by sample, a sample's
/// features side by side in their order (Disaggregated Multi-Tower, section 3.1, step e). All blocks together are one
/// matrix, by source. Local; one pass, and rows that this rank has yet to look up go straight there.
template <Group G>
struct Transpose {
    template <class Form>
    using Out = std::enable_if_t<std::is_same_v<Form, RelayedVectors<G>>, TowerVectors<G>>;
    using Adjoint = Plan<CutSamples<Transpose>>;
    using Uses = boost::mp11::mp_list<Transpose>;
    using In = G;
    using Sees = TransposeFamily::Sees;
    using Family = TransposeFamily;
    using Tape = TransposeTape;
    static std::string name() { return "Transpose"; }
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/steps/transpose.ipp"
#endif
