// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// The fragments of docs/towers.md: compiled, not run.

#include <cstdint>
#include <vector>

#include "shardwise/comm/all_reduce.hpp"
#include "shardwise/dense/optimizer.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/sharding/table.hpp"
#include "shardwise/tower/affinity.hpp"
#include "shardwise/tower/dot.hpp"
#include "shardwise/tower/partition.hpp"

namespace docs {

namespace sw = shardwise;

std::vector<int> towers(sw::CommunicatorRef comm, const std::vector<sw::TableConfig>& tables,
                        const sw::LayerOptions& options, const sw::JaggedView<std::int64_t>& batch,
                        sw::DenseAdagrad& optimizer, sw::MatrixView<const float> gradient, double learning_rate);

std::vector<int> towers(sw::CommunicatorRef comm, const std::vector<sw::TableConfig>& tables,
                        const sw::LayerOptions& options, const sw::JaggedView<std::int64_t>& batch,
                        sw::DenseAdagrad& optimizer, sw::MatrixView<const float> gradient, double learning_rate) {
    // clang-format off
    using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Table>, sw::Collective<sw::Hierarchical>, sw::Tower<sw::Dot>>;
    Layer layer{comm, tables, options, {}, {.per_feature = 1, .per_tower = 0, .dimension = 16}};

    sw::BasicTreeAllReduce<float, sw::OneTower> over_tower{comm, layer.topology()};
    // ... a step:
    layer.backward(gradient);
    over_tower(layer.module().parameters().gradients());
    optimizer.step(layer.module().parameters().values(), layer.module().parameters().gradients(), learning_rate);

    sw::EmbeddingLayer<> plain{comm, tables};
    sw::AffinityMeter meter{26, 16};  // features, and elements of each
    meter.add(plain.forward(batch));  // a layer without modules; as many batches as one likes
    sw::BasicTreeAllReduce<double>{comm}(meter.sums());
    const sw::Partition partition = sw::partition_features(meter.affinity(), {.towers = 4, .ratio = 1.5});
    // clang-format on
    return partition.tower_of;
}

}  // namespace docs
