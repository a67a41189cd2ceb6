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
/// Ids to the ranks that own their rows.

namespace shardwise::inline SHARDWISE_ABI::steps {

struct IdsTape;
/// \tparam Relays  there are some \tparam Told  they are told sizes
template <bool Relays, bool Told>
struct IdsFamily {
    using Tapes = boost::mp11::mp_list<IdsTape>;
    using Sees = boost::mp11::mp_list<const Placement>;
};
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, IdsFamily<false, false>);
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, IdsFamily<true, false>);
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, IdsFamily<true, true>);

/// One message a peer: the number of samples, 8 bytes a block of the peer's (feature, shard) pairs with its numbers of
/// ids and bags, then lengths (4 bytes a bag; absent where each has one id or none has any), rows (4 bytes an id) and
/// weights (4 bytes an id, where the batch has some). Blocks of one's own rows stay where they are. To a relay of
/// sequences, 8 bytes more with the number of ids of each block that it passes on and does not own. \tparam Home  the
/// group in which each rank finds all rows
template <Group Home = World, class Relays = NoRelays>
struct ExchangeIds {
    template <class Form>
    using Out = std::enable_if_t<std::is_same_v<Form, ShardIds<Home>>, OwnedIds<Home, Relays>>;
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<ExchangeIds>;
    using Crosses = Home;
    using Under = typename Relays::group;
    using Family = IdsFamily<Relays::any, Relays::told>;
    using Sees = typename Family::Sees;
    using Tape = IdsTape;
    static std::string name() { return concat({"Exchange<", Home::name(), ", Ids>"}); }
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/steps/exchange_ids.ipp"
#endif
