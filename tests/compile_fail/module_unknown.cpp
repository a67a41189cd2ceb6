// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// EXPECT: Tower<> takes PassThrough, Dot, Cross or a TowerModule of your own
#include "shardwise/embedding/layer.hpp"

namespace sw = shardwise;

#ifndef SHARDWISE_EXPECT_FAIL
using Layer = sw::EmbeddingLayer<sw::Tower<sw::PassThrough>>;
#else
using Layer = sw::EmbeddingLayer<sw::Tower<int>>;
#endif

void use(sw::CommunicatorRef comm) {
    Layer layer{comm, {{.name = "a", .rows = 4, .dim = 2, .features = {}, .sharding = ""}}};
    static_cast<void>(layer.forward(sw::JaggedView<std::int64_t>{}));
    layer.backward({});
}
