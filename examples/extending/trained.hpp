// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/shardwise.hpp"

namespace sw = shardwise;

/// The 60 rows of a table, one behind the other, after five steps on `ranks` ranks, 1, 2, 4 or 8.
template <class... Policies>
std::vector<float> trained(int ranks, const typename sw::EmbeddingLayer<Policies...>::rule_type& rule = {}) {
    constexpr std::int64_t rows = 60, dim = 4;
    std::vector<float> table(rows * dim);
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = ranks}};
    world.run([&](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<Policies...> layer{
            comm, {{.name = "item", .rows = rows, .dim = dim}}, {.learning_rate = {.base = 0.1F}}, rule};
        const std::int64_t mine = 8 / comm.size();  // of the eight samples of a step
        for (int step = 0; step < 5; ++step) {
            sw::JaggedBatch<std::int64_t> batch{.samples = mine, .features = 1};
            for (std::int64_t sample = comm.rank() * mine; sample < (comm.rank() + 1) * mine; ++sample)
                batch.values.push_back((step + sample * sample) % rows);  // some ids twice
            const auto vectors = layer.forward(batch);
            std::vector<float> gradient;
            for (std::int64_t i = 0; i < mine * dim; ++i)
                gradient.push_back(vectors.data()[i] - 0.25F * static_cast<float>(i % dim));
            layer.backward({gradient.data(), mine, dim});
        }
        layer.for_each_shard([&](const sw::ShardView& shard, const sw::ShardRowNumbers& numbers) {
            for (std::int64_t row = 0; row < shard.rows; ++row)
                std::copy_n(shard.weights + row * shard.dim, shard.dim,
                            table.data() + numbers(row) * dim + shard.first_column);
        });
    });
    return table;
}

/// Ends the program unless what it says holds.
inline void require(bool holds, const char* what) {
    std::printf("%s: %s\n", holds ? "holds" : "FAILS", what);
    if (!holds) std::exit(1);
}
