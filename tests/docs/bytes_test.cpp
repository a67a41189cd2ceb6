// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// The formulas of docs/bytes.md, written down a second time, against what the library predicts.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/shardwise.hpp"

namespace docs {
namespace {

namespace sw = shardwise;

constexpr std::int64_t envelope = 16;
constexpr std::int64_t padded(std::int64_t bytes) {
    return (bytes + 7) / 8 * 8;
}

/// One feature a table; what all ranks look up.
struct Workload {
    sw::Topology topology;
    std::vector<sw::TableConfig> tables;
    std::vector<sw::JaggedBatch<int>> batches;  // (rank)

    [[nodiscard]] int ranks() const { return topology.ranks(); }
    [[nodiscard]] bool weighted(int rank) const { return !batches[static_cast<std::size_t>(rank)].weights.empty(); }
    /// The ids of a rank's feature.
    [[nodiscard]] std::vector<int> ids(int rank, std::size_t table) const {
        const auto& batch = batches[static_cast<std::size_t>(rank)];
        const auto n = static_cast<std::size_t>(batch.samples);
        std::size_t first = 0;
        for (std::size_t bag = 0; bag < table * n; ++bag)
            first += static_cast<std::size_t>(batch.lengths[bag]);
        std::size_t count = 0;
        for (std::size_t i = 0; i < n; ++i)
            count += static_cast<std::size_t>(batch.lengths[table * n + i]);
        return {batch.values.begin() + static_cast<std::ptrdiff_t>(first),
                batch.values.begin() + static_cast<std::ptrdiff_t>(first + count)};
    }
};

Workload make_workload(unsigned seed) {
    std::mt19937 dice{seed};
    const auto below = [&](int n) { return static_cast<int>(dice() % static_cast<unsigned>(n)); };
    Workload w{.topology = {.hosts = 1 + below(3), .ranks_per_host = 1 + below(3)}};
    for (int t = 0, tables = 1 + below(4); t < tables; ++t)
        w.tables.push_back({.name = "t" + std::to_string(t), .rows = 5 + below(40), .dim = 1 + below(9)});
    for (int rank = 0; rank < w.ranks(); ++rank) {
        sw::JaggedBatch<int> batch{.samples = below(4), .features = static_cast<std::int64_t>(w.tables.size())};
        const bool weighted = below(2) == 0;
        for (const sw::TableConfig& table : w.tables) {
            const bool ones = below(2) == 0;
            for (std::int64_t i = 0; i < batch.samples; ++i) {
                batch.lengths.push_back(ones ? 1 : below(4));
                for (int k = 0; k < batch.lengths.back(); ++k) {
                    batch.values.push_back(below(static_cast<int>(table.rows)));
                    if (weighted) batch.weights.push_back(0.5F);
                }
            }
        }
        w.batches.push_back(batch);
    }
    return w;
}

/// A block as the page defines it: the shard of a feature's table on one rank.
struct Block {
    std::size_t table;
    int width;
    int row_residue = -1;  // Row: this shard's rows are those with (row + table) mod ranks equal to it
};

std::vector<Block> blocks_on(const Workload& w, int owner, sw::Splits splits) {
    std::vector<Block> blocks;
    const int ranks = w.ranks();
    for (std::size_t t = 0; t < w.tables.size(); ++t) {
        const int dim = w.tables[t].dim;
        const int number = static_cast<int>(t);
        if (splits == sw::Splits::rows) {
            blocks.push_back({.table = t, .width = dim, .row_residue = owner});
        } else if (splits == sw::Splits::columns) {
            const int shards = std::min(dim, ranks);
            for (int s = 0; s < shards; ++s)
                if ((s + number) % ranks == owner)
                    blocks.push_back({.table = t, .width = dim * (s + 1) / shards - dim * s / shards});
        } else if (number % ranks == owner) {
            blocks.push_back({.table = t, .width = dim});
        }
    }
    return blocks;
}

/// (bag of a rank): its ids in a block.
std::vector<std::int64_t> ids_in(const Workload& w, int source, const Block& block) {
    const auto& batch = w.batches[static_cast<std::size_t>(source)];
    const auto n = static_cast<std::size_t>(batch.samples);
    const std::vector<int> ids = w.ids(source, block.table);
    std::vector<std::int64_t> counts(n);
    std::size_t id = 0;
    for (std::size_t bag = 0; bag < n; ++bag)
        for (int k = 0; k < batch.lengths[block.table * n + bag]; ++k, ++id)
            if (block.row_residue < 0 || (ids[id] + static_cast<int>(block.table)) % w.ranks() == block.row_residue)
                ++counts[bag];
    return counts;
}

void add(sw::TierTraffic& cell, std::int64_t payload, std::int64_t control) {
    cell += {.payload = payload, .control = padded(payload + control) - payload + envelope, .messages = 1};
}

/// Row, Col and Table.
template <class S, class P, class Wire, class Rule>
void check_owned(const Workload& w, const sw::LayerCost& cost) {
    sw::TrafficMatrix forward{w.topology};
    sw::TrafficMatrix backward{w.topology};
    for (int owner = 0; owner < w.ranks(); ++owner) {
        const auto blocks = blocks_on(w, owner, S::splits);
        for (int source = 0; source < w.ranks(); ++source) {
            if (source == owner) continue;
            std::int64_t payload = 0;
            std::int64_t control = 8;
            std::int64_t elements = 0;
            for (const Block& block : blocks) {
                const std::vector<std::int64_t> bags = ids_in(w, source, block);
                const std::int64_t ids = std::accumulate(bags.begin(), bags.end(), std::int64_t{0});
                const std::int64_t filled = std::count_if(bags.begin(), bags.end(), [](auto n) { return n > 0; });
                payload += ids * (w.weighted(source) ? 8 : 4);
                control += 8 + (ids != filled ? 4 * filled : 0);
                elements += (P::pooled ? filled : ids) * block.width;
            }
            add(forward.at(source, owner), payload, control);
            add(forward.at(owner, source), elements * static_cast<std::int64_t>(Wire::forward::bytes), 0);
            add(backward.at(source, owner), elements * static_cast<std::int64_t>(Wire::backward::bytes), 0);
        }
        if (S::splits != sw::Splits::columns || !Rule::needs_row_norm) continue;
        for (int other = 0; other < w.ranks(); ++other) {
            if (other == owner) continue;
            std::int64_t touched = 0;
            for (const Block& mine : blocks)
                for (const Block& theirs : blocks_on(w, other, S::splits)) {
                    if (mine.table != theirs.table) continue;
                    std::set<int> rows;
                    for (int source = 0; source < w.ranks(); ++source)
                        for (const int id : w.ids(source, mine.table))
                            rows.insert(id);
                    touched += static_cast<std::int64_t>(rows.size());
                }
            add(backward.at(owner, other), 8 * touched, 0);
        }
    }
    EXPECT_TRUE(forward == cost.forward);
    EXPECT_TRUE(backward == cost.backward);
}

template <class S, class P, class Wire, class Rule>
void check(const Workload& given) {
    Workload w = given;
    if (!P::pooled)
        for (auto& batch : w.batches)
            batch.weights.clear();
    sw::ThreadWorld world{w.topology};
    world.run([&](sw::ThreadCommunicator& comm) {
        if (comm.rank() != 0) return;
        sw::EmbeddingLayer<sw::Sharding<S>, sw::Pooling<P>, Wire, sw::Optimizer<Rule>> layer{comm, w.tables};
        std::vector<sw::JaggedView<int>> views;
        for (const auto& batch : w.batches)
            views.push_back(batch.view());
        check_owned<S, P, Wire, Rule>(w, layer.predict_cost(views));
    });
}

/// DP: an agreement forward, scatters and gathers backward.
void check_replicated(const Workload& w) {
    const sw::Topology t = w.topology;
    sw::LayerCost cost;
    sw::ThreadWorld world{t};
    world.run([&](sw::ThreadCommunicator& comm) {
        if (comm.rank() != 0) return;
        const sw::EmbeddingLayer<sw::Sharding<sw::DP>, sw::Wire<sw::Fp32, sw::Bf16>> layer{comm, w.tables};
        std::vector<sw::JaggedView<int>> views;
        for (const auto& batch : w.batches)
            views.push_back(batch.view());
        cost = layer.predict_cost(views);
    });
    // the rows that some rank of `ranks` touched, with the given digits (-1: any)
    const auto touched = [&](std::size_t table, const std::vector<int>& ranks, int local, int host) {
        std::set<int> rows;
        for (const int rank : ranks)
            for (const int id : w.ids(rank, table))
                if ((local < 0 || id % t.ranks_per_host == local) &&
                    (host < 0 || id / t.ranks_per_host % t.hosts == host))
                    rows.insert(id);
        return static_cast<std::int64_t>(rows.size());
    };
    std::vector<int> all;
    for (int rank = 0; rank < t.ranks(); ++rank)
        all.push_back(rank);
    const auto of_host = [&](int rank) {
        std::vector<int> ranks;
        for (const int other : all)
            if (t.host_of(other) == t.host_of(rank)) ranks.push_back(other);
        return ranks;
    };
    sw::TrafficMatrix forward{t};
    sw::TrafficMatrix backward{t};
    for (const int from : all)
        for (const int to : all) {
            if (from == to) continue;
            add(forward.at(from, to), 0, 0);
            const bool host = t.host_of(from) == t.host_of(to);
            if (!host && t.local_of(from) != t.local_of(to)) continue;
            std::int64_t scattered = 0;
            std::int64_t gathered = 0;
            for (std::size_t k = 0; k < w.tables.size(); ++k) {
                const std::int64_t row = 4 + 2 * w.tables[k].dim;
                if (host) {
                    scattered += row * touched(k, {from}, t.local_of(to), -1);
                    gathered += row * touched(k, all, t.local_of(from), -1);
                } else {
                    scattered += row * touched(k, of_host(from), t.local_of(from), t.host_of(to));
                    gathered += row * touched(k, all, t.local_of(from), t.host_of(from));
                }
            }
            const auto control = 4 * static_cast<std::int64_t>(w.tables.size());
            add(backward.at(from, to), scattered, control);
            add(backward.at(from, to), gathered, control);
        }
    EXPECT_TRUE(forward == cost.forward);
    EXPECT_TRUE(backward == cost.backward);
}

TEST(Bytes, FormulasOfThePageAreWhatTheCostReaderPredicts) {
    for (unsigned seed = 1; seed <= 60; ++seed) {
        SCOPED_TRACE(seed);
        const Workload w = make_workload(seed);
        check<sw::Row, sw::Sum, sw::Wire<sw::Fp32>, sw::Sgd>(w);
        check<sw::Col<>, sw::Mean, sw::Wire<sw::Bf16>, sw::RowwiseAdagrad<>>(w);
        check<sw::Table, sw::None, sw::Wire<sw::Bf16, sw::Fp32>, sw::Sgd>(w);
        check<sw::Row, sw::None, sw::Wire<sw::Fp32, sw::Bf16>, sw::RowwiseAdagrad<>>(w);
        check_replicated(w);
    }
}

}  // namespace
}  // namespace docs
