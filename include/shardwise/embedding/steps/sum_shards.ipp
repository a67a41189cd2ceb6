// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "shardwise/core/at.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/embedding/lanes/shard_sums.hpp"
#include "shardwise/embedding/steps/sum_shards.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

struct SumShardsTape {
    std::vector<Head> heads;          // as they came
    std::vector<std::size_t> sum_of;  // number of the sum that each is a part of
    std::vector<VectorBlock> sums;
    std::vector<VectorBlock> parts;  // of the gradient
    ShardSums sum;
    Buffer<float> buffer;
};

namespace detail {

struct SumShardsBody {
    using Tape = SumShardsTape;
    using View = shardwise::View<Lanes, SumShardsFamily::Tapes, SumShardsFamily::Sees>;

    static void run(StepEnv& env, View& view) {
        Lanes& lanes = view.lanes();
        Tape& tape = view.tape<SumShardsTape>();
        std::pmr::memory_resource& memory = *view.state<WorkMemory>().resource;
        const std::vector<VectorBlock>& lane = lanes.vectors;
        tape.sum.prepare(lane, true, memory);
        std::int64_t elements = 0;
        for_sums(lane, [&](std::span<const VectorBlock> parts) { elements += room(parts[0].head, parts.size()); });
        float* to = tape.buffer.on(memory).resize(static_cast<std::size_t>(elements)).data();
        tape.heads.clear();
        tape.sum_of.clear();
        tape.sums.clear();
        for_sums(lane, [&](std::span<const VectorBlock> parts) {
            for (const VectorBlock& part : parts) {
                tape.heads.push_back(part.head);
                tape.sum_of.push_back(tape.sums.size());
            }
            const Head& head = parts[0].head;
            if (parts.size() == 1) {
                tape.sums.push_back(parts[0]);
                return;
            }
            tape.sum(env.topology, parts, {to, head.n, head.dim});
            tape.sums.push_back(rows_in_memory(head, to));
            to += room(head, parts.size());
        });
        lanes.vectors = tape.sums;
        // the samples' ranks expect as many: of each bag, one block from each group that has some of its shards
        const auto same = [&](const Head& a, const Head& b) {
            return a.feature == b.feature && env.group.together(a.owner, b.owner);
        };
        lanes.home.erase(std::unique(lanes.home.begin(), lanes.home.end(), same), lanes.home.end());
    }
    template <class Cost>
    static void memory(const CostEnv&, const Cost& cost, int rank, MemoryTally& tally) {
        const auto& lane = at(cost.vectors, rank);
        tally.need(ShardSums::bytes(lane, true, ShardSums::every_bag));
        typename Cost::Number elements = 0;
        for (std::size_t i = 0; i < lane.size();) {
            std::size_t end = i;
            while (end < lane.size() && same_bags(lane[end], lane[i]))
                ++end;
            if (end - i > 1) elements += lane[i].n * lane[i].head.dim;
            i = end;
        }
        tally.need(4 * rounded_up(elements));
    }
    template <class Cost>
    static void shape(const CostEnv&, Cost& cost) {
        typename Cost::Blocks sums(cost.vectors.size());
        for (std::size_t rank = 0; rank < sums.size(); ++rank)
            for (const auto& block : cost.vectors[rank]) {
                if (sums[rank].empty() || !same_bags(sums[rank].back(), block))
                    sums[rank].push_back(block);
                else
                    sums[rank].back().looked_up = true;
            }
        cost.step_on(std::move(sums));
    }

  private:
    template <class Use>
    static void for_sums(const std::vector<VectorBlock>& lane, Use use) {
        const VectorBlock* const end = lane.data() + lane.size();
        for (const VectorBlock* first = lane.data(); first != end;) {
            const std::span<const VectorBlock> parts{first, parts_of_bags(first, end)};
            use(parts);
            first += parts.size();
        }
    }
    static std::int64_t room(const Head& head, std::size_t parts) { return parts > 1 ? head.n * head.dim : 0; }
    template <class Block>
    static bool same_bags(const Block& a, const Block& b) {
        return a.head.source == b.head.source && a.head.feature == b.head.feature;
    }
};

struct ShareGradientsBody {
    using View = shardwise::View<Lanes, ShareGradientsFamily::Tapes>;
    static void run(StepEnv&, View& view) {
        SumShardsTape& tape = view.tape<SumShardsTape>();
        auto& lane = view.lanes().vectors;
        tape.parts.resize(tape.heads.size());
        for (std::size_t i = 0; i < tape.heads.size(); ++i) {
            tape.parts[i] = lane[tape.sum_of[i]];
            tape.parts[i].head = tape.heads[i];
        }
        lane.swap(tape.parts);
    }
    template <class Cost>
    static void shape(const CostEnv&, Cost& cost) {
        cost.step_back();
    }
};

}  // namespace detail

SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, SumShardsFamily) {
    return code_from<EmbeddingDomain, detail::SumShardsBody>();
}
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, ShareGradientsFamily) {
    return code_from<EmbeddingDomain, detail::ShareGradientsBody>();
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
