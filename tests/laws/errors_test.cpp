// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

#include "laws/laws.hpp"
#include "shardwise/comm/thread_world.hpp"

/// \file
/// Bad input: one clear error on every rank, nothing hung, no table changed, and the layer goes on.

namespace laws {
namespace {

/// Row contents of every shard of a rank. Collective.
std::vector<float> weights_of(sw::LayerBase& layer) {
    while (layer.advance_sync()) {
    }
    std::vector<float> all;
    layer.for_each_shard([&](const sw::ShardView& shard, const auto&) {
        all.insert(all.end(), shard.weights, shard.weights + shard.rows * shard.dim);
    });
    return all;
}

struct Spoilt {
    const char* what;
    std::function<void(RankBatch&)> spoil;  // of rank 1
    const char* text;
    BagForm form = BagForm::lengths;
    bool weighted = false;
};

const std::vector<Spoilt>& all_spoilt() {
    static const std::vector<Spoilt> all{
        {"an id past the end", [](RankBatch& b) { b.ids[1] = 4000; }, "id 4000 is not a row of table 't0'"},
        {"the first id past the end", [](RankBatch& b) { b.ids[1] = 30; }, "id 30 is not a row of table 't0'"},
        {"a negative id", [](RankBatch& b) { b.ids[0] = -7; },
         "id -7 is not a row of table 't0'; its rows are 0 to 29"},
        {"a negative length", [](RankBatch& b) { b.lengths[2] = -1; }, "a length of -1"},
        {"too many ids", [](RankBatch& b) { b.ids.push_back(0); }, "values"},
        {"offsets that run backwards", [](RankBatch& b) { std::swap(b.offsets[1], b.offsets[2]); },
         "offsets run backwards", BagForm::offsets},
        {"too few offsets", [](RankBatch& b) { b.offsets.pop_back(); }, "offsets", BagForm::offsets},
        {"a weight that is no number", [](RankBatch& b) { b.weights[0] = std::nanf(""); }, "not a finite number",
         BagForm::lengths, true},
        {"too few weights", [](RankBatch& b) { b.weights.pop_back(); }, "weights", BagForm::lengths, true}};
    return all;
}

/// A sharding, a collective, and what is asked for.
using Kind = std::tuple<std::string, std::string, std::string>;

std::string text_of(const Kind& kind) {
    return std::get<0>(kind) + "_" + std::get<1>(kind) + "_" + std::get<2>(kind);
}

struct Groups {
    sw::Topology topology;
    sw::GroupOptions options = {};
};

const std::vector<Groups>& all_groups() {
    static const std::vector<Groups> all{{{2, 2}},
                                         {{2, 2}, {.count = 2}},
                                         {{2, 2}, {.count = 2, .placement = sw::GroupPlacement::inside_hosts}},
                                         {{2, 2}, {.count = 4}},
                                         {{4, 2}, {.count = 2}}};
    return all;
}

class Errors : public testing::TestWithParam<Kind> {
  protected:
    static const Composition& composition() {
        static const std::vector<Composition> all = all_compositions();
        for (const Composition& c : all)
            if (Kind{c.sharding, c.collective, c.requests} == GetParam() && !c.has_modules() && c.pooling == "sum" &&
                c.ids == "at_sample" && c.order == "tree" &&
                c.optimizer == (c.collective == "flat" && c.sharding != "col3" ? "adagrad" : "rowwise_adagrad") &&
                c.backward_wire == "fp32")
                return c;
        throw std::runtime_error{"no composition for " + text_of(GetParam())};
    }
    /// Three tables of 30 rows; batches of 4 samples with 2 ids in each bag, and on rank 1, which is wrong, of 200.
    static Scenario scenario(const Spoilt& spoilt, int ranks) {
        Scenario s;
        const std::vector<std::string> shardings = composition().shardings;
        for (int t = 0; t < 3; ++t) {
            const std::string name = "t" + std::to_string(t);
            s.tables.push_back({.name = name,
                                .rows = 30,
                                .dim = 5,
                                .features = {name},
                                .sharding = shardings[static_cast<std::size_t>(t) % shardings.size()]});
            s.table_of.push_back(t);
            s.width += 5;
        }
        for (int step = 0; step < 3; ++step) {
            s.steps.emplace_back();
            for (int rank = 0; rank < ranks; ++rank) {
                RankBatch b;
                b.samples = rank == 1 ? 200 : 4;
                const int bags = static_cast<int>(3 * b.samples);
                b.lengths.assign(static_cast<std::size_t>(bags), 2);
                for (int i = 0; i < 2 * bags; ++i)
                    b.ids.push_back((i * 11 + rank + step) % 30);
                for (int i = 0; i <= bags; ++i)
                    b.offsets.push_back(2 * i);
                if (spoilt.weighted) b.weights.assign(b.ids.size(), 0.5F);
                b.gradient.assign(static_cast<std::size_t>(b.samples * 15), 0.25F);
                if (step == 1 && rank == 1) spoilt.spoil(b);
                s.steps.back().push_back(b);
            }
        }
        return s;
    }
};

TEST_P(Errors, BadBatchOnOneRankIsTheSameErrorOnAll) {
    for (std::size_t turn = 0; turn < all_spoilt().size() * all_groups().size(); ++turn) {
        const Spoilt& spoilt = all_spoilt()[turn / all_groups().size()];
        const Groups& groups = all_groups()[turn % all_groups().size()];
        const sw::Topology& topology = groups.topology;
        SCOPED_TRACE(sw::concat({spoilt.what, ", groups ", groups.options.count, " of ", topology.ranks()}));
        sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = topology, .deadline = std::chrono::seconds{20}}};
        Case c{.topology = world.topology(), .form = spoilt.form};
        const Scenario s = scenario(spoilt, topology.ranks());
        std::mutex mutex;
        std::vector<std::string> errors;
        world.run([&](sw::ThreadCommunicator& comm) {
            auto layer = composition().make(comm, s.tables, 0.1F, 5, {}, false, nullptr, groups.options);
            const auto me = static_cast<std::size_t>(comm.rank());
            const auto learn = [&](std::size_t step) {
                const RankBatch& b = s.steps[step][me];
                const auto result = layer.forward();
                QueuedLayer::Matrices gradient;
                for (std::size_t f = 0; f < result.size(); ++f)
                    gradient.emplace_back(b.gradient.data() + 5 * f, result[f].rows(), 5, 15);
                layer.backward(gradient);
            };
            layer.start(s.steps[0][me].view(c, 3));
            learn(0);
            const auto before = weights_of(*layer);
            // the next batch's ids are under way already when the bad one is noticed
            layer.start(s.steps[1][me].view(c, 3));
            layer.start(s.steps[2][me].view(c, 3));
            try {
                static_cast<void>(layer.forward());
            } catch (const sw::BadInput& error) {
                const std::lock_guard lock{mutex};
                errors.emplace_back(error.what());
            }
            if (weights_of(*layer) != before) throw Broken{"a table has changed"};
            learn(2);
            if (!before.empty() && weights_of(*layer) == before) throw Broken{"the layer does not learn any more"};
        });
        ASSERT_EQ(errors.size(), static_cast<std::size_t>(topology.ranks()));
        for (const std::string& error : errors) {
            EXPECT_EQ(error, errors[0]);
            EXPECT_TRUE(error.starts_with("rank 1: ")) << error;
            EXPECT_NE(error.find(spoilt.text), std::string::npos) << error;
        }
    }
}

TEST_P(Errors, GradientOfAnotherShapeOnOneRankChangesNoTable) {
    const Spoilt fine{"", [](RankBatch&) {}, ""};
    for (const Groups& groups : all_groups()) {
        const Scenario s = scenario(fine, groups.topology.ranks());
        sw::ThreadWorld world{
            sw::ThreadWorldOptions{.topology = groups.topology, .deadline = std::chrono::seconds{20}}};
        const Case c{.topology = world.topology()};
        world.run([&](sw::ThreadCommunicator& comm) {
            auto layer = composition().make(comm, s.tables, 0.1F, 5, {}, false, nullptr, groups.options);
            const auto me = static_cast<std::size_t>(comm.rank());
            const auto before = weights_of(*layer);
            layer.start(s.steps[0][me].view(c, 3));
            static_cast<void>(layer.forward());
            const std::int64_t rows = comm.rank() == 2 ? 3 : s.steps[0][me].samples;
            try {
                layer.backward({{s.steps[0][me].gradient.data(), rows, 5, 15}});
                throw Broken{"no error"};
            } catch (const sw::BadInput& error) {
                if (std::string{error.what()}.find("rank 2: the gradient is 3 x 15, and the output 4 x 15") ==
                    std::string::npos)
                    throw Broken{error.what()};
            }
            if (weights_of(*layer) != before) throw Broken{"a table has changed"};
        });
    }
}

/// The shardings and collectives that this build has.
std::vector<Kind> kinds() {
    std::set<Kind> all;
    for (const Composition& c : all_compositions())
        if (c.pooling == "sum") all.emplace(c.sharding, c.collective, c.requests);
    return {all.begin(), all.end()};
}

INSTANTIATE_TEST_SUITE_P(Kinds, Errors, testing::ValuesIn(kinds()),
                         [](const testing::TestParamInfo<Kind>& kind) { return text_of(kind.param); });

TEST(Errors, TablesThatMakeNoSense) {
    sw::ThreadWorld world{sw::Topology{1, 2}};
    const auto message = [&](std::vector<sw::TableConfig> tables, const std::string& sharding) {
        std::string text;
        world.run([&](sw::ThreadCommunicator& comm) {
            try {
                for (const Composition& c : all_compositions())
                    if (c.sharding == sharding) {
                        static_cast<void>(c.build(comm, tables, {}, 0.0F));
                        break;
                    }
            } catch (const sw::BadInput& error) {
                if (comm.rank() == 0) text = error.what();
            }
        });
        return text;
    };
    EXPECT_EQ(message({{"a", 0, 4, {}, ""}}, "col"), "table 'a' has 0 rows: give it at least one");
    EXPECT_EQ(message({{"a", 4, 0, {}, ""}}, "col"), "table 'a' has dimension 0: give it at least 1");
    EXPECT_EQ(message({{"a", 4, 4, {"x"}, ""}, {"b", 4, 4, {"x"}, ""}}, "col"),
              "feature 'x' stands twice in the tables: give every feature one name");
    EXPECT_EQ(message({{"a", 4, 4, {"x"}, ""}, {"a", 4, 4, {"y"}, ""}}, "col"),
              "table 'a' stands twice: give every table one name");
    EXPECT_EQ(message({{"a", 4, 4, {}, "row"}}, "col"),
              "table 'a' asks for sharding 'row'; this layer has col alone: leave it empty, or use Mixed");
    EXPECT_EQ(message({{"a", 4, 4, {}, "col"}}, "col"), "");
    EXPECT_EQ(message({{"a", 4, 4, {}, "flex"}}, "mixed"),
              "table 'a' asks for sharding 'flex'; this layer has dp, table, row");
    EXPECT_EQ(message({{"a", std::int64_t{1} << 40, 4, {}, ""}}, "col").substr(0, 57),
              "table 'a': shard 0 has 1099511627776 rows, and a shard ho");
}

}  // namespace
}  // namespace laws
