// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// EXPECT: a ShardingPolicy whose home is one rank keeps whole tables on every rank
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/sharding/row.hpp"

namespace sw = shardwise;

struct MyRow : sw::Row {
    static constexpr const char* name = "my_row";
#ifdef SHARDWISE_EXPECT_FAIL
    using home = sw::Self;
#endif
};
using Layer = sw::EmbeddingLayer<sw::Sharding<MyRow>>;

int main() {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        Layer layer{comm, {{.name = "a", .rows = 4, .dim = 2}}};
        static_cast<void>(layer.forward(sw::JaggedView<std::int64_t>{}));
        layer.backward({});
    });
}
