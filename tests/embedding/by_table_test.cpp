// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/counting.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/sharding/col.hpp"
#include "shardwise/sharding/dp.hpp"
#include "shardwise/sharding/row.hpp"
#include "shardwise/sharding/table.hpp"

/// \file
/// A layer whose tables say how they are pooled computes what a layer of sums, one of means and one of sequences do,
/// bit by bit, in as many messages as one of them; and moves and holds what it predicts.

namespace shardwise_test {
namespace {

namespace sw = shardwise;

constexpr int steps = 5;

/// Tables that look up for several features, of all poolings under all shardings. \param mixed  they choose one
std::vector<sw::TableConfig> all_tables(bool mixed) {
    std::vector<sw::TableConfig> tables;
    const auto add = [&](std::int64_t rows, int dim, const char* sharding, const char* pooling, int features = 1) {
        const std::string name = "t" + std::to_string(tables.size());
        tables.push_back({.name = name,
                          .rows = rows,
                          .dim = dim,
                          .features = {},
                          .sharding = mixed ? sharding : "",
                          .load = 1.0F,
                          .pooling = pooling});
        for (int f = 0; f < features; ++f)
            tables.back().features.push_back(name + "f" + std::to_string(f));
    };
    add(11, 4, "dp", "sum");
    add(30, 7, "row", "none", 2);
    add(6, 3, "table", "mean");
    add(9, 8, "dp", "none");
    add(40, 5, "row", "sum");
    add(1, 2, "table", "none");
    add(13, 6, "row", "mean", 2);
    add(5, 1, "table", "sum");
    return tables;
}

/// Some of the tables: their numbers, and those of their features.
struct Some {
    std::vector<sw::TableConfig> tables;
    std::vector<int> numbers;
    std::vector<std::size_t> features;
};
Some some_of(const std::vector<sw::TableConfig>& all, bool sequences) {
    Some some;
    std::size_t feature = 0;
    for (std::size_t t = 0; t < all.size(); ++t) {
        const std::size_t end = feature + all[t].features.size();
        if ((all[t].pooling == "none") == sequences) {
            some.tables.push_back(all[t]);
            some.tables.back().pooling.clear();
            some.numbers.push_back(static_cast<int>(t));
            for (std::size_t f = feature; f < end; ++f)
                some.features.push_back(f);
        }
        feature = end;
    }
    return some;
}

/// One rank's bags of one step, feature by feature, and the gradients of the results.
struct Bags {
    struct Feature {
        bool sequence = false;
        int dim = 0;
        std::vector<std::int32_t> lengths;
        std::vector<std::int64_t> ids;
        std::vector<float> weights;
        std::vector<float> gradient;  // (samples or ids, dim)
    };
    std::int64_t samples = 0;
    bool ones = false;  ///< one id a bag: no lengths
    std::vector<Feature> features;

    Bags(const std::vector<sw::TableConfig>& tables, int step, int rank) {
        std::mt19937 dice{static_cast<unsigned>(100 * step + rank)};
        const auto below = [&](std::int64_t n) {
            return static_cast<std::int64_t>(dice() % static_cast<std::uint32_t>(n));
        };
        samples = (rank + step) % 4 == 3 ? 0 : 2 + below(5);
        ones = step == 2;
        for (const sw::TableConfig& table : tables)
            for (std::size_t i = 0; i < table.features.size(); ++i) {
                Feature& f = features.emplace_back();
                f.sequence = table.pooling == "none";
                f.dim = table.dim;
                for (std::int64_t s = 0; s < samples; ++s) {
                    f.lengths.push_back(ones ? 1 : static_cast<std::int32_t>(below(5)));
                    for (int k = 0; k < f.lengths.back(); ++k) {
                        f.ids.push_back(below(table.rows));
                        f.weights.push_back(f.sequence ? 1.0F : 0.25F * static_cast<float>(below(17) - 8));
                    }
                }
                const std::size_t rows = f.sequence ? f.ids.size() : f.lengths.size();
                for (std::size_t k = 0; k < rows * static_cast<std::size_t>(f.dim); ++k)
                    f.gradient.push_back(0.1F * static_cast<float>(below(101) - 50));
            }
    }
    /// Of some features; weighted where `weighted`.
    [[nodiscard]] sw::JaggedBatch<std::int64_t> batch(const std::vector<std::size_t>& numbers, bool weighted) const {
        sw::JaggedBatch<std::int64_t> batch;
        batch.samples = samples;
        batch.features = std::ssize(numbers);
        for (const std::size_t number : numbers) {
            const Feature& f = features[number];
            batch.values.insert(batch.values.end(), f.ids.begin(), f.ids.end());
            if (!ones) batch.lengths.insert(batch.lengths.end(), f.lengths.begin(), f.lengths.end());
            if (weighted) batch.weights.insert(batch.weights.end(), f.weights.begin(), f.weights.end());
        }
        return batch;
    }
    /// Gradients of the pooled features side by side.
    [[nodiscard]] std::vector<float> pooled_gradient() const {
        std::vector<float> all;
        for (std::int64_t s = 0; s < samples; ++s)
            for (const Feature& f : features)
                if (!f.sequence)
                    all.insert(all.end(), f.gradient.begin() + s * f.dim, f.gradient.begin() + (s + 1) * f.dim);
        return all;
    }
    [[nodiscard]] std::vector<sw::MatrixView<const float>> sequence_gradients() const {
        std::vector<sw::MatrixView<const float>> all;
        for (const Feature& f : features)
            if (f.sequence) all.emplace_back(f.gradient.data(), std::ssize(f.ids), f.dim);
        return all;
    }
};

/// A number that depends on nothing but the place.
float start(int table, std::int64_t row, int column) {
    return static_cast<float>((table * 131 + row * 17 + column * 5) % 97 - 48) / 64.0F;
}
/// \param numbers  of the layer's tables among all
template <class Use>
void for_each_weight(sw::LayerBase& layer, const std::vector<int>& numbers, Use use) {
    layer.for_each_shard([&](const sw::ShardView& shard, const sw::ShardRowNumbers& row_of) {
        for (std::int64_t r = 0; r < shard.rows; ++r)
            for (int d = 0; d < shard.dim; ++d)
                use(numbers[static_cast<std::size_t>(shard.table)], row_of(r), shard.first_column + d,
                    shard.weights[r * shard.dim + d]);
    });
}
std::vector<float> weights_of(sw::LayerBase& layer, const std::vector<int>& numbers, auto is_meant) {
    std::vector<float> all;
    for_each_weight(layer, numbers, [&](int table, std::int64_t, int, float w) {
        if (is_meant(table)) all.push_back(w);
    });
    return all;
}

bool same_bits(sw::MatrixView<const float> a, sw::MatrixView<const float> b) {
    if (a.rows() != b.rows() || a.columns() != b.columns()) return false;
    for (std::int64_t r = 0; r < a.rows(); ++r)
        for (std::int64_t c = 0; c < a.columns(); ++c)
            if (std::bit_cast<std::uint32_t>(a(r, c)) != std::bit_cast<std::uint32_t>(b(r, c))) return false;
    return true;
}

using Counting = sw::CountingCommunicator<sw::ThreadCommunicator>;

/// A layer of one pooling, of some of the tables.
struct Part {
    Counting comm;
    const Some& some;
    std::unique_ptr<sw::LayerBase> layer;
    sw::LayerFlight flight;

    Part(sw::ThreadCommunicator& below, const Some& of, sw::LayerNames names, const char* pooling,
         const sw::LayerOptions& options)
        : comm{below}, some{of} {
        names.pooling = pooling;
        layer = sw::make_layer(comm, some.tables, names, options);
        for_each_weight(*layer, some.numbers,
                        [](int table, std::int64_t row, int column, float& w) { w = start(table, row, column); });
    }
    sw::LayerVectors forward(const Bags& bags, bool weighted) {
        flight = layer->start(bags.batch(some.features, weighted).view());
        return layer->forward(flight);
    }
};

/// A layer of a type whose tables say how they are pooled, against parts with the same policies.
template <class Layer>
void check_rank(sw::ThreadCommunicator& below, const sw::LayerNames& names, const sw::Towers& towers) {
    const std::vector<sw::TableConfig> tables = all_tables(names.shardings.size() > 1);
    const Some pooled = some_of(tables, false);
    const Some sequences = some_of(tables, true);
    std::vector<int> numbers;
    for (int t = 0; t < static_cast<int>(tables.size()); ++t)
        numbers.push_back(t);
    std::vector<std::size_t> features(pooled.features.size() + sequences.features.size());
    for (std::size_t f = 0; f < features.size(); ++f)
        features[f] = f;
    const auto options = [&](const Some* of) {
        sw::LayerOptions some{.learning_rate = {.base = 0.1F}, .towers = {}};
        for (const auto& tower : towers) {
            some.towers.emplace_back();
            for (const std::string& feature : tower)
                for (const sw::TableConfig& table : of == nullptr ? tables : of->tables)
                    for (const std::string& own : table.features)
                        if (own == feature) some.towers.back().push_back(feature);
        }
        return some;
    };
    Counting comm{below};
    Layer layer{comm, tables, options(nullptr)};
    for_each_weight(layer, numbers,
                    [](int table, std::int64_t row, int column, float& w) { w = start(table, row, column); });
    Part sums{below, pooled, names, "sum", options(&pooled)};
    Part means{below, pooled, names, "mean", options(&pooled)};
    Part lists{below, sequences, names, "none", options(&sequences)};

    // Coalesced, there is one plan of all tables, which places each as if it stood beside all others: what has been
    // learnt then shows in the next results alone.
    const bool same_places = names.requests == "raw";
    sw::MemoryTally tally;
    sw::TrafficMatrix predicted{layer.topology()};
    bool means_differ = false;
    for (int step = 0; step < steps; ++step) {
        SCOPED_TRACE("step " + std::to_string(step) + ", rank " + std::to_string(comm.rank()));
        const bool weighted = step % 2 == 1;
        std::vector<sw::JaggedBatch<std::int64_t>> batches;
        std::vector<sw::JaggedView<std::int64_t>> views;
        for (int rank = 0; rank < comm.size(); ++rank)
            batches.push_back(Bags{tables, step, rank}.batch(features, weighted));
        for (const auto& batch : batches)
            views.push_back(batch.view());
        const sw::LayerCost cost = layer.predict_cost(views, &tally);
        predicted += cost.forward;
        predicted += cost.backward;

        const Bags bags{tables, step, comm.rank()};
        auto flight = layer.start(views[static_cast<std::size_t>(comm.rank())]);
        const sw::LayerVectors got = layer.forward(flight);
        const sw::LayerVectors sum = sums.forward(bags, weighted);
        const sw::LayerVectors mean = means.forward(bags, weighted);
        const sw::LayerVectors list = lists.forward(bags, false);
        int column = 0;
        std::size_t sequence = 0;
        std::size_t feature = 0;
        for (const sw::TableConfig& table : tables)
            for (std::size_t i = 0; i < table.features.size(); ++i, ++feature) {
                const std::string& name = table.features[i];
                if (table.pooling == "none") {
                    ASSERT_LT(sequence, got.sequences.size());
                    EXPECT_TRUE(same_bits(got.sequences[sequence], list.sequences[sequence])) << name;
                    std::vector<std::int32_t> lengths = bags.features[feature].lengths;
                    if (std::count(lengths.begin(), lengths.end(), 1) == std::ssize(lengths)) lengths.clear();
                    EXPECT_EQ((std::vector<std::int32_t>{got.lengths[sequence].begin(), got.lengths[sequence].end()}),
                              lengths)
                        << name;
                    ++sequence;
                    continue;
                }
                means_differ |=
                    !same_bits(sum.pooled.columns_from(column, table.dim), mean.pooled.columns_from(column, table.dim));
                const auto& of = table.pooling == "sum" ? sum : mean;
                EXPECT_TRUE(
                    same_bits(got.pooled.columns_from(column, table.dim), of.pooled.columns_from(column, table.dim)))
                    << name;
                column += table.dim;
            }
        EXPECT_EQ(got.sequences.size(), sequence);
        EXPECT_EQ(got.pooled.columns(), column);

        const std::vector<float> gradient = bags.pooled_gradient();
        const auto gradients = bags.sequence_gradients();
        const sw::MatrixView<const float> matrix{gradient.data(), bags.samples, column};
        layer.backward(std::move(flight), {.pooled = matrix, .sequences = gradients});
        sums.layer->backward(std::move(sums.flight), {.pooled = matrix});
        means.layer->backward(std::move(means.flight), {.pooled = matrix});
        lists.layer->backward(std::move(lists.flight), {.pooled = {}, .sequences = gradients});
        for (const auto& [part, pooling] : {std::pair{&sums, "sum"}, {&means, "mean"}, {&lists, "none"}}) {
            const auto is_meant = [&, wanted = std::string{pooling}](int table) {
                return tables[static_cast<std::size_t>(table)].pooling == wanted;
            };
            if (!same_places) continue;
            EXPECT_EQ(weights_of(layer, numbers, is_meant), weights_of(*part->layer, part->some.numbers, is_meant))
                << pooling;
        }
    }
    EXPECT_TRUE(means_differ);
    bool moved = false;
    for_each_weight(layer, numbers,
                    [&](int table, std::int64_t row, int column, float w) { moved |= w != start(table, row, column); });
    EXPECT_TRUE(moved || layer.predict_static_bytes(comm.rank()) == 0);

    for (int to = 0; to < comm.size(); ++to) {
        const sw::TierTraffic& sent = comm.sent().at(comm.rank(), to);
        const sw::TierTraffic& of_sums = sums.comm.sent().at(comm.rank(), to);
        const sw::TierTraffic& of_lists = lists.comm.sent().at(comm.rank(), to);
        EXPECT_EQ(sent, predicted.at(comm.rank(), to)) << "to " << to;
        EXPECT_EQ(sent.messages, std::max(of_sums.messages, of_lists.messages)) << "to " << to;
        if (!same_places) continue;
        EXPECT_EQ(sent.payload, of_sums.payload + of_lists.payload) << "to " << to;
    }
    EXPECT_EQ(layer.memory().static_bytes(), layer.predict_static_bytes(comm.rank()));
    EXPECT_EQ(layer.memory().dynamic_bytes(), tally.bytes());
}

/// On several topologies; with Hierarchical, tables of every pooling in every tower.
template <class S, class C, class R = sw::Raw>
void check(const std::vector<std::string>& shardings) {
    using Layer = sw::EmbeddingLayer<sw::Sharding<S>, sw::Collective<C>, sw::Pooling<sw::ByTable>, sw::Requests<R>>;
    for (const sw::Topology& topology :
         {sw::Topology{2, 2}, sw::Topology{1, 3}, sw::Topology{2, 1}, sw::Topology{1, 1}}) {
        SCOPED_TRACE(std::string{C::name} + " on " + std::to_string(topology.hosts) + "x" +
                     std::to_string(topology.ranks_per_host));
        sw::Towers towers;
        if (std::is_same_v<C, sw::Hierarchical>) {
            towers.resize(static_cast<std::size_t>(topology.hosts));
            std::size_t t = 0;
            for (const sw::TableConfig& table : all_tables(false)) {
                auto& tower = towers[t++ / 2 % towers.size()];
                tower.insert(tower.end(), table.features.begin(), table.features.end());
            }
        }
        sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = topology, .deadline = std::chrono::seconds{20}}};
        world.run([&](sw::ThreadCommunicator& comm) {
            check_rank<Layer>(comm, {.shardings = shardings, .collective = C::name, .requests = R::name}, towers);
        });
    }
}

TEST(ByTable, RowsAreTheirPartsTogether) {
    check<sw::Row, sw::Flat>({"row"});
    check<sw::Row, sw::Hierarchical>({"row"});
}
TEST(ByTable, ColumnsAreTheirPartsTogether) {
    check<sw::Col<>, sw::Flat>({"col"});
    check<sw::Col<>, sw::Hierarchical>({"col"});
}
TEST(ByTable, WholeTablesAreTheirPartsTogether) {
    check<sw::Table, sw::Flat>({"table"});
    check<sw::Table, sw::Hierarchical>({"table"});
}
TEST(ByTable, CopiesAreTheirPartsTogether) {
    check<sw::DP, sw::Flat>({"dp"});
}
TEST(ByTable, MixedTablesAreTheirPartsTogether) {
    using S = sw::Mixed<sw::DP, sw::Table, sw::Row>;
    check<S, sw::Flat>({"dp", "table", "row"});
    check<S, sw::Hierarchical>({"dp", "table", "row"});
}
TEST(ByTable, CoalescedRequestsAreTheirPartsTogether) {
    check<sw::Row, sw::Flat, sw::Coalesced>({"row"});
    check<sw::Row, sw::Hierarchical, sw::Coalesced>({"row"});
    check<sw::Mixed<sw::DP, sw::Table, sw::Row>, sw::Flat, sw::Coalesced>({"dp", "table", "row"});
}

}  // namespace
}  // namespace shardwise_test
