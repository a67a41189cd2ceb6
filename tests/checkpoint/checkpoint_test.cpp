// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/checkpoint/checkpoint.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"

// What says what goes into a checkpoint needs no JSON.
#ifdef NLOHMANN_JSON_VERSION_MAJOR
#error "checkpoint/checkpoint.hpp includes nlohmann_json"
#endif

namespace {

namespace sw = shardwise;

TEST(checkpoint, refers_to_the_memory_of_the_model) {
    sw::ThreadWorld world{sw::Topology{1, 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<> layer{comm, {{.name = "a", .rows = 9, .dim = 3}, {.name = "b", .rows = 4, .dim = 2}}};
        std::vector<float> weight(6);
        const sw::Checkpoint all{.layer = sw::shards_of(layer),
                                 .dense = {{.name = "w", .shape = {2, 3}, .values = weight}},
                                 .numbers = {{"samples", 5}}};
        EXPECT_EQ(all.layer.layer, &layer);
        ASSERT_EQ(all.layer.tables.size(), 2U);
        EXPECT_EQ(all.layer.tables[1].name, "b");
        EXPECT_EQ(all.layer.optimizer, layer.optimizer());
        std::size_t shards = 0;
        layer.for_each_shard([&](const sw::ShardView& shard, const sw::ShardRowNumbers& row) {
            const sw::TableShard& mine = all.layer.shards.at(shards++);
            EXPECT_EQ(mine.view.weights, shard.weights);
            EXPECT_EQ(mine.view.rows, shard.rows);
            for (std::int64_t local = 0; local < shard.rows; ++local)
                EXPECT_EQ(mine.row(local), row(local));
        });
        EXPECT_EQ(shards, all.layer.shards.size());
        EXPECT_GT(shards, 0U);
        all.dense[0].values[4] = 7.0F;
        EXPECT_EQ(weight[4], 7.0F);
        EXPECT_EQ(all.numbers.at("samples"), 5);
        EXPECT_GT(all.chunk_bytes, 0);
    });
}

}  // namespace
