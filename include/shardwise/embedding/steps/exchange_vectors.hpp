// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/lanes/cost_lanes.hpp"
#include "shardwise/embedding/lanes/forms.hpp"
#include "shardwise/embedding/tables/store.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/step.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// Vectors on their way home to the ranks whose samples they belong to, and gradients back.

namespace shardwise::inline SHARDWISE_ABI::steps {

struct VectorTape;
struct GradientTape;
/// \tparam ToRelays  from the owners to relays; else home
template <bool ToRelays>
struct VectorsFamily {
    using Tapes = boost::mp11::mp_list<VectorTape>;
    using Sees = boost::mp11::mp_list<const Store, const Wires, const WorkMemory>;
};
/// \tparam ForwardTape  of the exchange whose adjoint it is
template <class ForwardTape>
struct GradientsFamily {
    using Tapes = boost::mp11::mp_list<GradientTape, ForwardTape>;
    using Sees = boost::mp11::mp_list<const PlanPooling, const Wires, const WorkMemory>;
};
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, VectorsFamily<false>);
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, VectorsFamily<true>);
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, GradientsFamily<VectorTape>);

/// The adjoint of an ExchangeVectors: the gradient of each block to the rank that sent it. Sizes are known on both
/// sides.
template <class Exchanged, class Wire>
struct ExchangeGradients {
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<ExchangeGradients, Exchanged>;
    using Crosses = typename Exchanged::Crosses;
    using Family = GradientsFamily<typename Exchanged::Tape>;
    using Sees = typename Family::Sees;
    using Tape = GradientTape;
    static std::string name() {
        return concat({"Exchange<", Crosses::name(), ", Gradients, ", std::string{Wire::name}, ">"});
    }
};

/// Each block of vectors one hop home inside G, looked up into one message a peer; receivers know all sizes. Without
/// relays from the ranks that looked up to the source, G being the home of the tables. To relays, G being neighbouring
/// ranks (OneHost, OneTower), to the member with the source's index; from there home over PeersOf<> those. Blocks that
/// stay on their rank stay as they are (looked up and rounded, where the wire rounds).
template <Group G, class Forward, class Backward, bool ToRelays = false>
struct ExchangeVectors {
    template <class Form>
    using Out = typename detail::AfterHop<G, Form, ToRelays>::type;
    using Adjoint = Plan<ExchangeGradients<ExchangeVectors, Backward>>;
    using Uses = boost::mp11::mp_list<ExchangeVectors>;
    using Crosses = G;
    using Family = VectorsFamily<ToRelays>;
    using Sees = typename Family::Sees;
    using Tape = VectorTape;
    static std::string name() {
        return concat({"Exchange<", G::name(), ", Vectors, ", std::string{Forward::name}, ">"});
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/steps/exchange_vectors.ipp"
#endif
