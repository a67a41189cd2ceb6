// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// EXPECT: Optimizer<> takes a SparseOptimizer
// EXPECT: Halving
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"

namespace sw = shardwise;

/// A user's own optimizer, complete but for what a flaw takes away.
struct Halving {
    static constexpr const char* name = "halving";
    static constexpr int row_slots = 0;
    static constexpr int element_slots = 1;
    static constexpr bool needs_row_norm = false;
    struct Row {};
#ifndef SHARDWISE_EXPECT_FAIL
    Row row(const sw::UpdateStep&, float*, double, int) const {
        return {};
    }
#endif
    void element(const Row&, float& weight, float, float& count) const {
        weight *= 0.5F;
        count += 1.0F;
    }
};

using Layer = sw::EmbeddingLayer<sw::Optimizer<Halving>>;

int main() {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        Layer layer{comm, {{.name = "a", .rows = 4, .dim = 2, .features = {}, .sharding = ""}}};
        static_cast<void>(layer.forward(sw::JaggedView<std::int64_t>{}));
        layer.backward({});
    });
}
