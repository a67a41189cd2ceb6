// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/embedding/steps/exchange_vectors.hpp"
#include "shardwise/embedding/steps/vector_exchange.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

struct VectorTape final : detail::VectorExchange {};

namespace detail {

template <bool ToRelays>
struct VectorsBody {
    using Tape = VectorTape;
    using View =
        shardwise::View<Lanes, typename VectorsFamily<ToRelays>::Tapes, typename VectorsFamily<ToRelays>::Sees>;

    static Exchange& begin(StepEnv& env, View& view) {
        Tape& tape = view.template tape<VectorTape>();
        Lanes& lanes = view.lanes();
        tape.leaving = lanes.vectors;
        tape.coming = ToRelays ? lanes.relayed : lanes.home;
        tape.to_rank.clear();
        for (const VectorBlock& block : tape.leaving)
            tape.to_rank.push_back(env.group.toward(env.rank, block.head.source));
        tape.from_rank.clear();
        for (const Head& head : tape.coming)
            tape.from_rank.push_back(env.group.toward(env.rank, head.owner));
        tape.bind(env, view.template state<Wires>().forward, lanes, *view.template state<WorkMemory>().resource);
        return tape;
    }
    template <class Cost>
    static void memory(const CostEnv& env, const Cost& cost, int rank, MemoryTally& tally) {
        memory_of_hop(env, cost, rank, tally);
    }
    template <class Cost>
    static void shape(const CostEnv& env, Cost& cost, TrafficMatrixOf<typename Cost::Number>& round) {
        shape_of_hop(env, cost, round);
    }
};

}  // namespace detail

SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, VectorsFamily<false>) {
    return code_from<EmbeddingDomain, detail::VectorsBody<false>>();
}
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, VectorsFamily<true>) {
    return code_from<EmbeddingDomain, detail::VectorsBody<true>>();
}
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, GradientsFamily<VectorTape>) {
    return code_from<EmbeddingDomain, detail::GradientsBody<VectorTape>>();
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
