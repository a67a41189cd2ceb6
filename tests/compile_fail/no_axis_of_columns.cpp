// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// EXPECT: a value of Sharding<> stands without its axis: write Sharding<...> around it
// EXPECT_LINE: has_its_axis Col
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/sharding/col.hpp"

namespace sw = shardwise;

#ifndef SHARDWISE_EXPECT_FAIL
using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Col<2>>, sw::Pooling<sw::Sum>>;
#else
using Layer = sw::EmbeddingLayer<sw::Col<2>, sw::Pooling<sw::Sum>>;
#endif

int main() {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        Layer layer{comm, {{.name = "a", .rows = 4, .dim = 2, .features = {}, .sharding = "row"}}};
        static_cast<void>(layer.forward(sw::JaggedView<std::int64_t>{}));
        layer.backward({});
    });
}
