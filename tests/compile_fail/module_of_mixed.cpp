// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// EXPECT: Tower<> needs one sharding policy for all tables
#include "keep.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/sharding/row.hpp"
#include "shardwise/sharding/table.hpp"

namespace sw = shardwise;

#ifndef SHARDWISE_EXPECT_FAIL
using Layer = sw::EmbeddingLayer<sw::Collective<sw::Hierarchical>, sw::Tower<Keep>>;
#else
using Layer =
    sw::EmbeddingLayer<sw::Collective<sw::Hierarchical>, sw::Tower<Keep>, sw::Sharding<sw::Mixed<sw::Row, sw::Table>>>;
#endif

void use(sw::CommunicatorRef comm) {
    Layer layer{comm, {{.name = "a", .rows = 4, .dim = 2, .features = {}, .sharding = ""}}};
    static_cast<void>(layer.forward(sw::JaggedView<std::int64_t>{}));
    layer.backward({});
}
