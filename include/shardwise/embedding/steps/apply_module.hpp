// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <type_traits>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/lanes/cost_lanes.hpp"
#include "shardwise/embedding/lanes/forms.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/step.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// A tower's module as a step.

namespace shardwise::inline SHARDWISE_ABI::steps {

struct ModuleTape;
struct ModuleGradientsTape;
struct ApplyFamily {
    using Tapes = boost::mp11::mp_list<ModuleTape>;
    using Sees = boost::mp11::mp_list<TowerModules, const WorkMemory>;
};
struct ModuleGradientsFamily {
    using Tapes = boost::mp11::mp_list<ModuleGradientsTape, ModuleTape>;
    using Sees = boost::mp11::mp_list<TowerModules, const WorkMemory>;
};
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, ApplyFamily);
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, ModuleGradientsFamily);

/// The adjoint of Apply: the module's backward pass. The gradients of its parameters are those of the samples that this
/// rank relays; they are to be summed inside the tower. Local.
template <class Applied>
struct ModuleGradients {
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<ModuleGradients, Applied>;
    using In = typename Applied::In;
    using Sees = ModuleGradientsFamily::Sees;
    using Family = ModuleGradientsFamily;
    using Tape = ModuleGradientsTape;
    static std::string name() { return "ModuleGradients"; }
};

/// At a relay in G: the module of its tower on the vectors of all samples that it relays. What travels on is the
/// module's result. Local; the module's operations.
template <Group G, class M>
struct Apply {
    template <class Form>
    using Out = std::enable_if_t<std::is_same_v<Form, TowerVectors<G>>, ModuleVectors<G>>;
    using Adjoint = Plan<ModuleGradients<Apply>>;
    using Uses = boost::mp11::mp_list<Apply>;
    using In = G;
    using Sees = ApplyFamily::Sees;
    using Family = ApplyFamily;
    using Tape = ModuleTape;
    static std::string name() { return concat({"Apply<", std::string{M::name}, ">"}); }
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/steps/apply_module.ipp"
#endif
