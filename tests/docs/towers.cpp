// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// The fragments of docs/towers.md and docs/partitioner.md: compiled, not run.

#include <cstdint>
#include <vector>

#include "shardwise/checkpoint/dense_tensors.hpp"
#include "shardwise/checkpoint/tower_tensors.hpp"
#include "shardwise/comm/all_reduce.hpp"
#include "shardwise/dense/data_parallel.hpp"
#include "shardwise/dense/optimizer.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/sharding/table.hpp"
#include "shardwise/tower/affinity.hpp"
#include "shardwise/tower/any_module.hpp"
#include "shardwise/tower/dot.hpp"
#include "shardwise/tower/layer_modules.hpp"
#include "shardwise/tower/partition.hpp"

namespace docs {

namespace sw = shardwise;

std::vector<int> towers(sw::CommunicatorRef comm, const std::vector<sw::TableConfig>& tables,
                        const sw::LayerOptions& options, const sw::JaggedView<std::int64_t>& batch,
                        sw::MemoryAccount& memory, sw::MatrixView<const float> gradient, double learning_rate);

std::vector<int> towers(sw::CommunicatorRef comm, const std::vector<sw::TableConfig>& tables,
                        const sw::LayerOptions& options, const sw::JaggedView<std::int64_t>& batch,
                        sw::MemoryAccount& memory, sw::MatrixView<const float> gradient, double learning_rate) {
    // clang-format off
    using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Table>, sw::Collective<sw::Hierarchical>, sw::Tower<sw::Dot>>;
    Layer layer{comm, tables, options, {}, {.per_feature = 1, .per_tower = 0, .dimension = 16}};

    sw::ParameterSet& parameters = layer.module().parameters();
    sw::DataParallel<sw::DenseAdagrad, sw::OneTower> training{
        parameters, {parameters.values().size(), memory.tables()}, comm, layer.topology(), memory.work()};
    // ... a step:
    layer.backward(gradient);
    training.sum();
    training.step(learning_rate);

    sw::EmbeddingLayer<> plain{comm, tables};
    sw::AffinityMeter meter{26, 16};  // features, and elements of each
    meter.add(plain.forward(batch));  // a layer without modules; as many batches as one likes
    sw::BasicTreeAllReduce<double>{comm}(meter.sums());
    const sw::Partition partition = sw::partition_features(meter.affinity(), {.towers = 4, .ratio = 1.5});
    // clang-format on
    return partition.tower_of;
}

std::int64_t any_module(sw::LayerBase& any_layer);

std::int64_t any_module(sw::LayerBase& any_layer) {
    // clang-format off
    sw::ParameterSet& of_module = sw::module_of<sw::AnyModule>(any_layer).parameters();
    const sw::ModulesSize size = sw::size_of_modules<sw::AnyModule>(any_layer);  // flops and parameters of all towers
    const sw::TrafficMatrix moved = sw::predict_module_sum<sw::AnyModule>(any_layer, sw::DensePrecision::single);
    // clang-format on
    return size.parameters + of_module.elements() + moved.total().host.messages;
}

void checkpoint(sw::CommunicatorRef comm, sw::LayerBase& layer, sw::DataParallel<sw::DenseAdagrad>& of_dense,
                sw::DataParallel<sw::DenseAdagrad, sw::OneTower>& of_module);

/// A fragment of docs/checkpoints.md.
void checkpoint(sw::CommunicatorRef comm, sw::LayerBase& layer, sw::DataParallel<sw::DenseAdagrad>& of_dense,
                sw::DataParallel<sw::DenseAdagrad, sw::OneTower>& of_module) {
    // clang-format off
    sw::TowerTensors<sw::Dot, sw::DenseAdagrad> tensors{layer, of_module, comm};
    sw::Checkpoint all{.layer = sw::shards_of(layer)};
    sw::append_tensors(all, of_dense);
    tensors.append_to(all);
    tensors.gather();
    // ... save_checkpoint(comm, path, all), or load_checkpoint and then ...
    tensors.scatter();
    of_dense.optimizer().set_steps(layer.steps());
    of_module.optimizer().set_steps(layer.steps());
    // clang-format on
}

}  // namespace docs
