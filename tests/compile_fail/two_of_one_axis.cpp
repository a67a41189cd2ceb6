// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// EXPECT: Pooling<> is given twice: an embedding layer takes at most one policy of each axis
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"

namespace sw = shardwise;

#ifndef SHARDWISE_EXPECT_FAIL
using Layer = sw::EmbeddingLayer<sw::Pooling<sw::Mean>, sw::Sharding<sw::Row>>;
#else
using Layer = sw::EmbeddingLayer<sw::Pooling<sw::Mean>, sw::Pooling<sw::Sum>>;
#endif

int main() {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        Layer layer{comm, {{.name = "a", .rows = 4, .dim = 2, .features = {}, .sharding = "row"}}};
        static_cast<void>(layer.forward(sw::JaggedView<std::int64_t>{}));
        layer.backward({});
    });
}
