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
#include "shardwise/embedding/steps/exchange_vectors.hpp"
#include "shardwise/embedding/tables/store.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/step.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// Vectors home to ranks that did not ask for them, and what these cannot know.

namespace shardwise::inline SHARDWISE_ABI::steps {

struct AnswerTape;
struct AnswersFamily {
    using Tapes = boost::mp11::mp_list<AnswerTape>;
    using Sees = boost::mp11::mp_list<const Store, const Placement, const PlanPooling, const Wires, const WorkMemory>;
};
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, AnswersFamily);
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, GradientsFamily<AnswerTape>);

/// Each block of vectors home, looked up into one message a peer. Before them go 8 bytes with the number of the peer's
/// samples, and for each mean of which the peer has no part, the lengths of its bags: 4 bytes a sample, from the owner
/// of shard 0. In place of all that, what is wrong with the peer's bags. \tparam G  the home of the tables
template <Group G, class Forward, class Backward>
struct ExchangeAnswers {
    template <class Form>
    using Out = std::enable_if_t<std::is_same_v<Form, OwnedVectors<G, Unasked>>, HomeVectors>;
    using Adjoint = Plan<ExchangeGradients<ExchangeAnswers, Backward>>;
    using Uses = boost::mp11::mp_list<ExchangeAnswers>;
    using Crosses = G;
    using Family = AnswersFamily;
    using Sees = AnswersFamily::Sees;
    using Tape = AnswerTape;
    static std::string name() {
        return concat({"Exchange<", G::name(), ", Answers, ", std::string{Forward::name}, ">"});
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/steps/exchange_answers.ipp"
#endif
