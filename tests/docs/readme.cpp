// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// The program of README.md.

#include <cstdio>
#include <vector>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/shardwise.hpp"

namespace sw = shardwise;
using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Row>, sw::Pooling<sw::Mean>, sw::Optimizer<sw::RowwiseAdagrad<>>>;

int main() {
    sw::ThreadWorld world{sw::Topology{.hosts = 2, .ranks_per_host = 2}};
    world.run([](sw::Communicator auto& comm) {  // runs on each of the four ranks
        Layer layer{comm, {{.name = "user", .rows = 1000, .dim = 4}, {.name = "item", .rows = 5000, .dim = 8}}};
        const sw::JaggedBatch<int> batch{.samples = 2, .features = 2, .values = {7, 7, 42, 1}, .lengths = {1, 2, 0, 1}};

        const float before = layer.forward(batch.view())(0, 0);  // (2 samples, 4 + 8 columns)
        const std::vector<float> gradient(2 * 12, 0.5F);
        layer.backward({gradient.data(), 2, 12});
        const float after = layer.forward(batch.view())(0, 0);

        if (comm.rank() != 0) return;
        std::printf("user 7 begins with %.4f before the step and %.4f after it\n\n", before, after);
        std::printf("%s", sw::describe(layer.program()).c_str());
    });
}
