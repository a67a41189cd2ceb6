// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/data/hot_batches.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "shardwise/comm/counting.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/make_layer.hpp"

namespace hot_batches_test {
namespace {

namespace sw = shardwise;

constexpr std::int64_t columns = 2;
constexpr std::int64_t features = 3;

/// Two tables; the second has two features. Rows 1 and 3 of the first and 4 of the second are on every rank.
sw::LayerBlueprint layer_of(bool replicated = true, std::vector<std::string> tiers = {"dp", "row"},
                            const char* requests = "raw") {
    const std::vector<sw::TableConfig> tables = {{.name = "a", .rows = 5, .dim = 2},
                                                 {.name = "b", .rows = 6, .dim = 2, .features = {"b1", "b2"}}};
    sw::RowPlan plan{.tiers = tiers, .tables = {}};
    for (const sw::TableConfig& table : tables) {
        sw::TableRowPlan& rows = plan.tables.emplace_back(sw::all_in_last_tier(table.name, table.rows, tiers.size()));
        if (!replicated) continue;
        rows.replicated = table.name == "a" ? std::vector<std::int64_t>{3, 1} : std::vector<std::int64_t>{4};
        rows.tiers[0] = std::ssize(rows.replicated);
        rows.tiers.back() -= rows.tiers[0];
    }
    return sw::draw_layer({2, 2}, tables, {.shardings = tiers, .tiered = true, .requests = requests}, {.rows = &plan});
}
bool is_hot(std::int64_t feature, std::int64_t id) {
    return feature == 0 ? id == 1 || id == 3 : id == 4;
}

/// A sample, as it is written into batches and read back out of them.
struct Sample {
    std::vector<float> labels;
    std::vector<float> dense;
    std::vector<std::vector<std::int64_t>> bags;  // (feature)
    std::vector<std::vector<float>> weights;      // (feature)

    [[nodiscard]] bool hot() const {
        for (std::size_t f = 0; f < bags.size(); ++f)
            for (const std::int64_t id : bags[f])
                if (!is_hot(static_cast<std::int64_t>(f), id)) return false;
        return true;
    }
    friend bool operator==(const Sample&, const Sample&) = default;
};

/// What samples have beside numbers.
struct Shape {
    std::int64_t labels = 1;
    bool single = false;
    bool weighted = false;
};

sw::ClickBatch batch_of(const std::vector<Sample>& samples, const Shape& shape) {
    sw::ClickBatch batch;
    batch.dense_columns = columns;
    batch.ids.samples = std::ssize(samples);
    batch.ids.features = features;
    for (const Sample& sample : samples) {
        batch.labels.insert(batch.labels.end(), sample.labels.begin(), sample.labels.end());
        batch.dense.insert(batch.dense.end(), sample.dense.begin(), sample.dense.end());
    }
    for (std::size_t f = 0; f < features; ++f)
        for (const Sample& sample : samples) {
            if (!shape.single) batch.ids.lengths.push_back(static_cast<std::int32_t>(sample.bags[f].size()));
            batch.ids.values.insert(batch.ids.values.end(), sample.bags[f].begin(), sample.bags[f].end());
            if (shape.weighted)
                batch.ids.weights.insert(batch.ids.weights.end(), sample.weights[f].begin(), sample.weights[f].end());
        }
    return batch;
}

std::vector<Sample> samples_of(const sw::ClickBatch& batch, const Shape& shape) {
    batch.ids.view().validate();
    std::vector<Sample> samples(static_cast<std::size_t>(batch.samples()));
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const auto labels = static_cast<std::size_t>(shape.labels);
        samples[i].labels.assign(batch.labels.begin() + static_cast<std::ptrdiff_t>(i * labels),
                                 batch.labels.begin() + static_cast<std::ptrdiff_t>((i + 1) * labels));
        samples[i].dense.assign(batch.dense.begin() + static_cast<std::ptrdiff_t>(i * columns),
                                batch.dense.begin() + static_cast<std::ptrdiff_t>((i + 1) * columns));
    }
    std::size_t id = 0;
    std::size_t bag = 0;
    for (std::size_t f = 0; f < features; ++f)
        for (Sample& sample : samples) {
            sample.bags.emplace_back();
            sample.weights.emplace_back();
            for (std::int32_t k = batch.ids.lengths.empty() ? 1 : batch.ids.lengths[bag]; k > 0; --k, ++id) {
                sample.bags.back().push_back(batch.ids.values[id]);
                if (shape.weighted) sample.weights.back().push_back(batch.ids.weights[id]);
            }
            ++bag;
        }
    return samples;
}

/// Lends batches of its samples, of sizes that change, and cannot read one of them.
struct Script {
    std::vector<Sample> samples;
    Shape shape;
    std::int64_t fails_at = -1;  // sample
    std::string why = {};
    std::int64_t position = 0;
    std::int64_t most_lent = 0;
    sw::ClickBatch batch = {};

    const sw::ClickBatch* next() {
        const std::int64_t count = std::min<std::int64_t>(1 + position % 3, std::ssize(samples) - position);
        if (fails_at >= position && fails_at < position + count) throw sw::BadInput{why};
        if (count == 0) return nullptr;
        batch = batch_of({samples.begin() + position, samples.begin() + position + count}, shape);
        position += count;
        most_lent = std::max(most_lent, count);
        return &batch;
    }
    void rewind() { position = 0; }
};
using Batches = sw::HotBatches<Script>;

/// Data of one rank. \param heat  of 8 ids, so many are rows that every rank has
Script any_script(std::int64_t most, const Shape& shape, int heat, float rank) {
    Script script{.samples = {}, .shape = shape};
    const auto count = *rc::gen::inRange<std::int64_t>(0, most + 1);
    for (std::int64_t i = 0; i < count; ++i) {
        Sample& sample = script.samples.emplace_back();
        for (std::int64_t label = 0; label < shape.labels; ++label)
            sample.labels.push_back(static_cast<float>(*rc::gen::inRange(0, 2)));
        sample.dense = {rank, static_cast<float>(i)};  // all samples differ
        const bool cold = *rc::gen::inRange(0, 8) >= heat;
        for (std::int64_t f = 0; f < features; ++f) {
            const int length = shape.single ? 1 : *rc::gen::inRange(0, 3);
            auto& bag = sample.bags.emplace_back();
            auto& weights = sample.weights.emplace_back();
            for (int k = 0; k < length; ++k) {
                bag.push_back(cold ? *rc::gen::inRange<std::int64_t>(0, 5) : f == 0 ? 1 : 4);
                if (shape.weighted) weights.push_back(static_cast<float>(k));
            }
        }
    }
    return script;
}

/// What a rank was given.
struct Given {
    std::vector<std::pair<sw::BatchKind, std::vector<Sample>>> batches;
    friend bool operator==(const Given&, const Given&) = default;
};

RC_GTEST_PROP(hot_batches, give_every_sample_once_and_batches_of_one_kind, ()) {
    const sw::Topology topology{*rc::gen::inRange(1, 3), *rc::gen::inRange(1, 4)};
    const auto ranks = static_cast<std::size_t>(topology.ranks());
    const Shape shape{.labels = *rc::gen::element<std::int64_t>(1, 1, 3),
                      .single = *rc::gen::arbitrary<bool>(),
                      .weighted = *rc::gen::arbitrary<bool>()};
    const sw::HotBatchesOptions options{.batch = *rc::gen::inRange<std::int64_t>(1, 6),
                                        .hot_batch = *rc::gen::inRange<std::int64_t>(1, 10),
                                        .order = *rc::gen::element(sw::HotOrder::spread, sw::HotOrder::first)};
    std::vector<Script> scripts;
    for (std::size_t rank = 0; rank < ranks; ++rank)  // some ranks have no hot sample, some no other, some none
        scripts.push_back(any_script(*rc::gen::element(0, 20, 60), shape, *rc::gen::element(0, 1, 4, 7, 8),
                                     static_cast<float>(rank)));
    std::vector<std::vector<Given>> given(ranks);  // (rank, pass)
    std::vector<std::string> wrong(ranks);
    sw::ThreadWorld world{topology};
    world.run([&](sw::ThreadCommunicator& below) {
        sw::CountingCommunicator comm{below};
        const auto rank = static_cast<std::size_t>(comm.rank());
        const auto expect = [&](bool right, const char* what) {
            if (!right) wrong[rank] += std::string{what} + "; ";
        };
        Script script = scripts[rank];
        Batches batches{comm, script, sw::HotRows{layer_of()}, options, columns, features};
        sw::ClickBatch batch;
        for (int pass = 0; pass < 2; ++pass, batches.rewind()) {
            Given& mine = given[rank].emplace_back();
            comm.reset();
            std::int64_t rounds = -batches.passes();
            for (;;) {
                const bool more = batches.announce(batch);
                ++rounds;
                expect(batches.waiting_samples() <= 4 * (options.batch + options.hot_batch) + script.most_lent,
                       "queue");
                const std::int64_t all = batches.global_samples();
                expect(!batches.failed(), "failed");
                expect(more == (all != 0), "end");
                if (all == 0) break;
                expect(batch.dense_columns == columns && batch.ids.features == features, "shape");
                mine.batches.emplace_back(batches.kind(), samples_of(batch, shape));
            }
            rounds += batches.passes();
            sw::Traffic predicted;
            for (; rounds > 0; --rounds)
                predicted += Batches::predict(topology).sent_by(comm.rank());
            expect(comm.sent().sent_by(comm.rank()) == predicted, "messages");
            expect(batches.waiting_samples() == 0, "left over");
        }
    });
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        RC_ASSERT(wrong[rank] == "");
        RC_ASSERT(given[rank][0] == given[rank][1]);
        const auto& mine = given[rank][0].batches;
        RC_ASSERT(mine.size() == given[0][0].batches.size());
        std::array<std::vector<Sample>, 2> found;  // (hot), in order
        bool others_began = false;
        for (std::size_t i = 0; i < mine.size(); ++i) {
            const auto& [kind, samples] = mine[i];
            const bool hot = kind == sw::BatchKind::hot;
            RC_ASSERT(kind == given[0][0].batches[i].first);
            RC_ASSERT(std::ssize(samples) <= (hot ? options.hot_batch : options.batch));
            std::size_t of_all = 0;
            for (const auto& theirs : given)
                of_all += theirs[0].batches[i].second.size();
            RC_ASSERT(of_all != 0U);
            RC_ASSERT(options.order == sw::HotOrder::spread || !hot || !others_began);
            others_began = others_began || !hot;
            found[hot ? 1 : 0].insert(found[hot ? 1 : 0].end(), samples.begin(), samples.end());
        }
        std::array<std::vector<Sample>, 2> expected;
        for (const Sample& sample : scripts[rank].samples)
            expected[sample.hot() ? 1 : 0].push_back(sample);
        RC_ASSERT(found[0] == expected[0]);
        RC_ASSERT(found[1] == expected[1]);
    }
}

TEST(hot_batches, come_in_proportion) {
    sw::ThreadWorld world{sw::Topology{1, 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        Script script;
        for (int i = 0; i < 800; ++i)  // one in four is hot
            script.samples.push_back({.labels = {0},
                                      .dense = {0, static_cast<float>(i)},
                                      .bags = {{i % 4 == 0 ? 1 : 0}, {4}, {4}},
                                      .weights = {{}, {}, {}}});
        Batches batches{comm, script, sw::HotRows{layer_of()}, {.batch = 5, .hot_batch = 10}, columns, features};
        sw::ClickBatch batch;
        int hot = 0;
        int all = 0;
        for (; batches.announce(batch); ++all) {
            EXPECT_EQ(batches.global_samples(), batches.kind() == sw::BatchKind::hot ? 20 : 10);
            hot += batches.kind() == sw::BatchKind::hot ? 1 : 0;
            EXPECT_NEAR(hot, all / 7.0, all < 110 ? 5 : 20) << all;  // a hot batch on six others
        }
        EXPECT_EQ(batches.global_samples(), 0);
        EXPECT_EQ(hot, 20);
        EXPECT_EQ(all, 20 + 120);
    });
}

TEST(hot_batches, a_rank_whose_queue_is_full_gets_its_turn) {
    using Waiting = std::vector<sw::detail::WaitingSamples>;
    const std::array<std::int64_t, 2> batch{4, 2};
    const std::array<std::int64_t, 2> most{16, 8};
    const auto next = [&](const Waiting& ranks, int last = 0) {
        return sw::detail::next_kind(ranks, batch, most, last);
    };
    EXPECT_EQ(next({{{0, 0}}, {{0, 0}}}), std::nullopt);
    EXPECT_EQ(next({{{1, 0}}, {{0, 0}}}), 0);
    EXPECT_EQ(next({{{0, 1}}, {{0, 0}}}), 1);
    EXPECT_EQ(next({{{4, 1}}, {{4, 1}}}), 0);      // batches of others are whole
    EXPECT_EQ(next({{{4, 2}}, {{4, 3}}}), 1);      // more wait
    EXPECT_EQ(next({{{15, 2}}, {{4, 0}}}), 0);     // of more ranks
    EXPECT_EQ(next({{{15, 8}}, {{4, 0}}}), 1);     // that rank cannot read on
    EXPECT_EQ(next({{{16, 8}}, {{4, 0}}}, 0), 1);  // neither of both: in turn
    EXPECT_EQ(next({{{16, 0}}, {{0, 8}}}, 1), 0);
}

TEST(hot_batches, what_one_rank_cannot_read_is_everybodys_error) {
    for (const sw::HotOrder order : {sw::HotOrder::spread, sw::HotOrder::first})
        for (const std::int64_t at : {0, 7}) {
            sw::ThreadWorld world{sw::Topology{2, 2}};
            world.run([&](sw::ThreadCommunicator& comm) {
                Script script;
                for (int i = 0; i < 12; ++i)
                    script.samples.push_back(
                        {.labels = {0}, .dense = {0, 0}, .bags = {{i % 3}, {4}, {4}}, .weights = {{}, {}, {}}});
                if (comm.rank() == 2) {
                    script.fails_at = at;
                    script.why = "line 7";
                }
                Batches batches{comm,    script,  sw::HotRows{layer_of()}, {.batch = 2, .hot_batch = 2, .order = order},
                                columns, features};
                sw::ClickBatch batch;
                int rounds = 0;
                do {
                    batches.announce(batch);
                    static_cast<void>(batches.global_samples());
                } while (!batches.failed() && ++rounds < 100);
                ASSERT_TRUE(batches.failed());
                EXPECT_EQ(batch.ids.features, features);
                try {
                    batches.fail();
                } catch (const sw::BadInput& error) {
                    EXPECT_STREQ(error.what(), "line 7");
                }
            });
        }
}

TEST(hot_batches, bad_input) {
    const auto error = [](const auto& call) {
        try {
            call();
        } catch (const sw::BadInput& wrong) {
            return std::string{wrong.what()};
        }
        return std::string{};
    };
    EXPECT_EQ(
        error([] { sw::HotRows{layer_of(false)}; }),
        "hot batches with a row plan that replicates no row: give a plan with rows in the first tier, or leave hot "
        "batches out");
    EXPECT_EQ(error([] {
                  sw::HotRows{layer_of(true, {"flex", "row"})};
              }).find("hot batches for a layer whose first"),
              0U);
    sw::ThreadWorld world{sw::Topology{1, 1}};
    world.run([&](sw::ThreadCommunicator& comm) {
        Script script;
        EXPECT_EQ(error([&] {
                      Batches{comm, script, sw::HotRows{layer_of()}, {.batch = 3, .hot_batch = 0}, columns, features};
                  }),
                  "a batch of 0 samples: give at least 1");
    });
    // By feature, also where requests are coalesced and plans are of tables. What is no row is not hot.
    for (const char* requests : {"raw", "coalesced"}) {
        const sw::HotRows hot{layer_of(true, {"dp", "row"}, requests)};
        for (std::int64_t f = 0; f < features; ++f)
            for (std::int64_t id = -1; id < 8; ++id)
                EXPECT_EQ(hot(f, id), is_hot(f, id)) << f << " " << id;
    }
}

}  // namespace
}  // namespace hot_batches_test
