// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// EXPECT: a frozen layer learns nothing: leave backward out, or give it another Optimizer<>
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/optimizer/frozen.hpp"

namespace sw = shardwise;

using Layer = sw::EmbeddingLayer<sw::Optimizer<sw::Frozen>>;

int main() {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        Layer layer{comm, {{.name = "a", .rows = 4, .dim = 2}}};
        static_cast<void>(layer.forward(sw::JaggedView<std::int64_t>{}));
#ifdef SHARDWISE_EXPECT_FAIL
        layer.backward({});
#endif
    });
}
