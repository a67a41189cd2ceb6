// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// EXPECT: a tower's module takes sums: relays know no lengths
#include "keep.hpp"
#include "shardwise/embedding/layer.hpp"

namespace sw = shardwise;

#ifndef SHARDWISE_EXPECT_FAIL
using Layer = sw::EmbeddingLayer<sw::Collective<sw::Hierarchical>, sw::Tower<Keep>>;
#else
using Layer = sw::EmbeddingLayer<sw::Collective<sw::Hierarchical>, sw::Tower<Keep>, sw::Pooling<sw::Mean>>;
#endif

void use(sw::CommunicatorRef comm) {
    Layer layer{comm, {{.name = "a", .rows = 4, .dim = 2, .features = {}, .sharding = ""}}};
    static_cast<void>(layer.forward(sw::JaggedView<std::int64_t>{}));
    layer.backward({});
}
