// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// EXPECT: MomentScale<c> divides a moment, and this optimizer has none that it divides
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/optimizer/sgd.hpp"

namespace sw = shardwise;

#ifndef SHARDWISE_EXPECT_FAIL
using Layer = sw::EmbeddingLayer<sw::Optimizer<sw::RowwiseAdagrad<>, sw::MomentScale<>>>;
#else
using Layer = sw::EmbeddingLayer<sw::Optimizer<sw::Sgd, sw::MomentScale<>>>;
#endif

int main() {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        Layer layer{comm, {{.name = "a", .rows = 4, .dim = 2}}};
        static_cast<void>(layer.forward(sw::JaggedView<std::int64_t>{}));
        layer.backward({});
    });
}
