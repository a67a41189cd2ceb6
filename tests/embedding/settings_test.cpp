// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/optimizer/adam.hpp"
#include "shardwise/optimizer/sgd.hpp"

/// \file
/// What tables have of their own: how they begin, how they learn, and what is refused. (That all of it has the same
/// bits however tables are sharded is a law: tests/laws.)

namespace shardwise_test {
namespace {

namespace sw = shardwise;
using Weights = std::map<std::tuple<int, std::int64_t, int>, float>;  // (table, row, column)

const std::vector<sw::TableConfig> two_tables{{.name = "a", .rows = 9, .dim = 4}, {.name = "b", .rows = 300, .dim = 8}};

Weights weights_of(sw::LayerBase& layer) {
    Weights all;
    layer.for_each_shard([&](const sw::ShardView& shard, const auto& row_of) {
        for (std::int64_t local = 0; local < shard.rows; ++local)
            for (int d = 0; d < shard.dim; ++d)
                all[{shard.table, row_of(local), shard.first_column + d}] = shard.weights[local * shard.dim + d];
    });
    return all;
}

/// How a layer begins, over all ranks.
Weights beginning(const std::string& sharding, int ranks, const sw::LayerOptions& options) {
    Weights all;
    std::mutex mutex;
    sw::ThreadWorld world{sw::Topology{1, ranks}};
    world.run([&](sw::ThreadCommunicator& comm) {
        const auto layer = sw::make_layer(comm, two_tables, {.shardings = {sharding}}, options);
        const std::scoped_lock lock{mutex};
        all.merge(weights_of(*layer));
    });
    return all;
}

TEST(TableSettings, BeginAsTheirLawSays) {
    sw::LayerOptions options{.seed = 5};
    options.by_table["*"].initial = sw::InitialValues::constant(0.25F);
    options.by_table["b"].initial = sw::InitialValues::normal(0.5F, 2.0F);
    const Weights all = beginning("row", 2, options);
    double sum = 0;
    double squares = 0;
    for (const auto& [place, weight] : all) {
        if (std::get<0>(place) == 0) {
            EXPECT_EQ(weight, 0.25F);
            continue;
        }
        const double x = static_cast<double>(weight) - 2.0;
        EXPECT_LT(std::abs(x), 0.5 * 6);
        sum += x;
        squares += x * x;
    }
    EXPECT_EQ(all.size(), 9U * 4 + 300 * 8);
    EXPECT_LT(std::abs(sum / 2400), 5 * 0.5 / std::sqrt(2400.0));
    EXPECT_NEAR(squares / 2400, 0.25, 5 * 0.25 * std::sqrt(2.0 / 2400));
    for (const std::string sharding : {"col", "table", "dp", "flex"})
        EXPECT_EQ(beginning(sharding, 4, options), all) << sharding;
    options.seed = 6;
    EXPECT_NE(beginning("row", 2, options), all);

    options.by_table["b"].initial = sw::InitialValues::uniform(0.01F);
    options.by_table["a"].initial = sw::InitialValues::zero();
    float most = 0;
    for (const auto& [place, weight] : beginning("row", 1, options)) {
        if (std::get<0>(place) == 0) {
            EXPECT_EQ(weight, 0.0F);
        }
        most = std::max(most, std::abs(weight));
    }
    EXPECT_LE(most, 0.01F);
    EXPECT_GT(most, 0.0099F);
}

/// What a rank of `ranks` says that makes a layer, or draws one on paper; empty: nothing.
struct Asked {
    sw::LayerNames names = {};
    sw::LayerOptions options = {};
    int ranks = 1;
};
template <class Make>
std::string said_of(const Make& make) {
    try {
        make();
    } catch (const sw::BadInput& error) {
        return error.what();
    }
    return {};
}
std::string complaint(const Asked& asked) {
    const sw::Topology topology{1, asked.ranks};
    const std::string said = said_of([&] {
        sw::ThreadWorld world{topology};
        world.run([&](sw::ThreadCommunicator& comm) {
            static_cast<void>(sw::make_layer(comm, two_tables, asked.names, asked.options));
        });
    });
    EXPECT_EQ(said_of([&] { static_cast<void>(sw::draw_layer(topology, two_tables, asked.names, asked.options)); }),
              said);
    return said;
}

TEST(TableSettings, ThatMakeNoSenseAreRefusedByTableFieldAndValue) {
    using Change = void (*)(sw::LayerOptions&);
    const std::vector<std::pair<Change, const char*>> cases{
        {[](sw::LayerOptions& o) { o.by_table["c"].l2 = 0.1F; },
         "LayerOptions::by_table has settings of a table 'c', and the layer has no table of this name"},
        {[](sw::LayerOptions& o) { o.by_table["b"].l2 = -0.5F; },
         "settings of table 'b': l2 is -0.5: give a number from 0 on"},
        {[](sw::LayerOptions& o) { o.by_table["*"].weight_decay = std::nanf(""); },
         "settings of table 'a': weight_decay is nan: give a number from 0 on"},
        {[](sw::LayerOptions& o) { o.by_table["b"].clip_value = -1.0F; },
         "settings of table 'b': clip_value is -1: give a number above 0, or 0 for no clipping"},
        {[](sw::LayerOptions& o) { o.by_table["b"].initial = sw::InitialValues::normal(-1.0F); },
         "settings of table 'b': the spread of the initial values is -1: give a number from 0 on"},
        {[](sw::LayerOptions& o) {
             o.by_table["b"].initial = sw::InitialValues::constant(std::numeric_limits<float>::infinity());
         },
         "settings of table 'b': the mean of the initial values is inf: give a finite number"},
        {[](sw::LayerOptions& o) { o.by_table["b"].rule = sw::make_row_rule(sw::Adam{}); },
         "settings of table 'b': constants of optimizer 'adam', and the layer's is 'rowwise_adagrad': a layer has one "
         "optimizer; give its constants"},
        {[](sw::LayerOptions& o) { o.by_table["b"].learning_rate = {.base = -1.0F}; },
         "settings of table 'b': learning rate: base is -1"},
        {[](sw::LayerOptions& o) { o.clip_norm = -1.0F; },
         "LayerOptions::clip_norm is no number above 0: give one, or 0 for no clipping"},
    };
    for (const auto& [change, text] : cases) {
        Asked asked;
        change(asked.options);
        EXPECT_EQ(complaint(asked).substr(0, std::string{text}.size()), text);
    }
}

TEST(ClipNorm, IsRefusedWhereGradientsAreNotThereBeforeARowChanges) {
    Asked frozen{.names = {.optimizer = "frozen"}};
    frozen.options.clip_norm = 1.0F;
    EXPECT_EQ(complaint(frozen), "LayerOptions::clip_norm of a layer that learns nothing has no effect: leave it out");
    Asked without_effect{.names = {.optimizer = "frozen"}};
    without_effect.options.by_table["*"].initial = sw::InitialValues::zero();
    EXPECT_EQ(complaint(without_effect), "");
    without_effect.options.by_table["b"].l2 = 0.5F;
    EXPECT_EQ(complaint(without_effect),
              "settings of table 'b': the layer's optimizer 'frozen' learns nothing, so that initial values alone have "
              "an effect");
    Asked groups{.names = {}, .options = {}, .ranks = 4};
    groups.options.clip_norm = 1.0F;
    groups.options.groups = {.count = 2};
    EXPECT_EQ(complaint(groups).find("LayerOptions::clip_norm of a layer with replica groups"), 0U);
    Asked columns{.names = {.shardings = {"col"}}, .options = {}, .ranks = 2};
    columns.options.clip_norm = 1.0F;
    columns.options.by_table["*"].l2 = 0.1F;
    EXPECT_NE(complaint(columns).find("columns are split"), std::string::npos);
    columns.names.optimizer = "adam";
    EXPECT_EQ(complaint(columns), "");
    columns.names.optimizer = "rowwise_adagrad";
    columns.ranks = 1;
    EXPECT_NE(complaint(columns).find("columns are split"), std::string::npos);
}

TEST(TableSettings, OfRanksThatDifferAreAMismatch) {
    sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = {1, 2}, .deadline = std::chrono::seconds{20}}};
    std::string said;
    try {
        world.run([](sw::ThreadCommunicator& comm) {
            sw::LayerOptions options;
            options.by_table["a"].weight_decay = comm.rank() == 0 ? 0.0F : 0.1F;
            options.clip_norm = comm.rank() == 0 ? 0.5F : 0.25F;
            const auto layer = sw::make_layer(comm, two_tables, {}, options);
            static_cast<void>(
                layer->forward(sw::JaggedBatch<std::int64_t>{.samples = 1, .features = 2, .values = {1, 2}}));
        });
    } catch (const sw::Mismatch& error) {
        said = error.what();
    }
    EXPECT_NE(said.find("table 'a', settings: other here than on rank "), std::string::npos) << said;
    EXPECT_NE(said.find("clipping by norm: 0."), std::string::npos) << said;
    EXPECT_EQ(said.find("table 'b'"), std::string::npos) << said;
}

/// Two samples a rank, of features a (pooled) and b.
sw::JaggedBatch<std::int64_t> batch_of(int rank) {
    return {.samples = 2, .features = 2, .values = {rank, 8, 0, 1 + rank, 2}, .lengths = {1, 1, 2, 1}};
}

TEST(TableSettings, ConstantsAndRatesAreThoseOfLayersOfOneTable) {
    const sw::Adam fast{.beta1 = 0.5, .beta2 = 0.75, .epsilon = 1e-3F};
    sw::ThreadWorld world{sw::Topology{1, 2}};
    world.run([&](sw::ThreadCommunicator& comm) {
        const sw::LayerNames adam{.optimizer = "adam"};
        sw::LayerOptions options{.learning_rate = {.base = 0.125F}};
        options.by_table["b"].rule = sw::make_row_rule(fast);
        options.by_table["b"].learning_rate = {.base = 0.5F, .warmup = 2};
        const auto both = sw::make_layer(comm, two_tables, adam, options);
        sw::LayerNames other = adam;
        other.rule = sw::make_row_rule(fast);
        const auto first = sw::make_layer(comm, two_tables, adam, {.learning_rate = {.base = 0.125F}});
        const auto second = sw::make_layer(comm, two_tables, other, {.learning_rate = {.base = 0.5F, .warmup = 2}});
        std::vector<float> gradient(2 * 12);
        for (std::size_t i = 0; i < gradient.size(); ++i)
            gradient[i] = static_cast<float>(i) - 7.5F + static_cast<float>(comm.rank());
        for (int step = 0; step < 4; ++step)
            for (sw::LayerBase* layer : {both.get(), first.get(), second.get()}) {
                static_cast<void>(layer->forward(batch_of(comm.rank())));
                layer->backward({.pooled = {gradient.data(), 2, 12}});
            }
        const Weights is = weights_of(*both);
        const Weights a = weights_of(*first);
        const Weights b = weights_of(*second);
        for (const auto& [place, weight] : is)
            EXPECT_EQ(weight, (std::get<0>(place) == 0 ? a : b).at(place));
        EXPECT_NE(a, b);
    });
}

/// What every rank is told of a gradient with such a number in it, and whether tables stay as they are.
void expect_refused(const sw::LayerNames& names, float number, const std::string& text) {
    sw::ThreadWorld world{sw::Topology{1, 3}};
    world.run([&](sw::ThreadCommunicator& comm) {
        const auto layer = sw::make_layer(comm, two_tables, names);
        const Weights before = weights_of(*layer);
        const auto vectors = layer->forward(batch_of(comm.rank()));
        std::vector<float> gradient(2 * 12 + 8 * 12, 1.0F);
        std::vector<sw::MatrixView<const float>> sequences;
        for (const auto& rows : vectors.sequences)
            sequences.emplace_back(gradient.data() + 24, rows.rows(), rows.columns());
        const std::size_t at = sequences.empty() ? 12 + 4 + 3 : 24 + 2 * 8 + 3;
        if (comm.rank() == 1) gradient[at] = number;
        if (!sequences.empty()) sequences[0] = {gradient.data(), sequences[0].rows(), sequences[0].columns()};
        std::string told;
        try {
            layer->backward({.pooled = {gradient.data(), sequences.empty() ? 2 : 0, sequences.empty() ? 12 : 0},
                             .sequences = sequences});
        } catch (const sw::BadInput& error) {
            told = error.what();
        }
        EXPECT_EQ(told, text);
        EXPECT_EQ(weights_of(*layer), before);
        EXPECT_EQ(layer->steps(), 0);
        static_cast<void>(layer->forward(batch_of(comm.rank())));  // and the layer goes on
    });
}

TEST(Gradients, ThatAreNotFiniteAreBadInputOnEveryRank) {
    const float infinity = std::numeric_limits<float>::infinity();
    for (const std::string sharding : {"row", "col", "dp", "table"}) {
        const sw::LayerNames pooled{.shardings = {sharding}};
        expect_refused(pooled, std::nanf(""),
                       "rank 1: the gradient of feature 'b', sample 1, column 3 is not a number");
        expect_refused(pooled, -infinity, "rank 1: the gradient of feature 'b', sample 1, column 3 is minus infinity");
        // the third id of b's sequence is sample 1's
        expect_refused({.shardings = {sharding}, .pooling = "none"}, infinity,
                       "rank 1: the gradient of feature 'b', sample 1, column 3 is infinite");
    }
}

TEST(Gradients, AreLookedAtEverywhereAndOnlyWhereTheyAre) {
    constexpr int columns = 694;  // 3470 numbers: many times the 64 that are looked at together, and a rest
    constexpr std::int64_t samples = 5;
    const std::vector<sw::TableConfig> tables{{.name = "t", .rows = 3, .dim = columns}};
    const sw::JaggedBatch<std::int64_t> batch{
        .samples = samples, .features = 1, .values = {0, 1, 2, 1, 0}, .lengths = {}};
    sw::ThreadWorld world{sw::Topology{1, 1}};
    world.run([&](sw::ThreadCommunicator& comm) {
        const auto layer = sw::make_layer(comm, tables, {.optimizer = "sgd"});
        const std::vector<std::pair<int, float>> between{{0, 0.0F}, {30, 0.0F}, {30, std::nanf("")}};  // rows, and what
        for (const auto& [more, number] : between) {
            const std::int64_t stride = columns + more;
            std::vector<float> memory(samples * stride, number);
            const sw::MatrixView<float> all{memory.data(), samples, columns, stride};
            for (std::int64_t row = 0; row < samples; ++row)
                std::fill_n(all.row(row), columns, 1e-3F);
            const auto step = [&] {
                static_cast<void>(layer->forward(batch));
                layer->backward({.pooled = {memory.data(), samples, columns, stride}});
            };
            EXPECT_NO_THROW(step());
            for (std::int64_t row = 0; row < samples; ++row)
                for (int column = columns - 1; column >= 0; column -= 33) {  // some in each 64, the first and the last
                    float& one = all.row(row)[column];
                    const float before = std::exchange(one, std::numeric_limits<float>::infinity());
                    EXPECT_THROW(step(), sw::BadInput) << row << ", " << column << " with stride " << stride;
                    one = before;
                }
        }
    });
}

TEST(Gradients, OfSequencesAloneNeedNoPooledMatrix) {
    sw::ThreadWorld world{sw::Topology{1, 1}};
    world.run([&](sw::ThreadCommunicator& comm) {
        const auto layer = sw::make_layer(comm, two_tables, {.optimizer = "sgd", .pooling = "none"});
        const auto vectors = layer->forward(batch_of(0));
        const std::vector<float> gradient(8 * 12, 1e-3F);
        std::vector<sw::MatrixView<const float>> sequences;
        for (const auto& rows : vectors.sequences)
            sequences.emplace_back(gradient.data(), rows.rows(), rows.columns());
        EXPECT_NO_THROW(layer->backward({.pooled = {nullptr, 3, 0, 5}, .sequences = sequences}));
        EXPECT_EQ(layer->steps(), 1);
    });
}

TEST(Gradients, AreNotLookedAtWhereThatIsSwitchedOff) {
    sw::ThreadWorld world{sw::Topology{1, 1}};
    world.run([&](sw::ThreadCommunicator& comm) {
        const auto layer = sw::make_layer(comm, two_tables, {.optimizer = "sgd"}, {.check_gradients = false});
        static_cast<void>(layer->forward(batch_of(0)));
        const std::vector<float> gradient(24, std::nanf(""));
        layer->backward({.pooled = {gradient.data(), 2, 12}});
        EXPECT_TRUE(std::isnan(weights_of(*layer)[{0, 8, 0}]));
    });
}

TEST(ClipNorm, OfSumsThatOverflowIsBadInputAndChangesNothing) {
    sw::ThreadWorld world{sw::Topology{1, 2}};
    world.run([&](sw::ThreadCommunicator& comm) {
        const auto layer = sw::make_layer(comm, two_tables, {.optimizer = "sgd"}, {.clip_norm = 1.0F});
        const Weights before = weights_of(*layer);
        static_cast<void>(layer->forward(batch_of(comm.rank())));
        const std::vector<float> gradient(24, 3e38F);
        EXPECT_THROW(layer->backward({.pooled = {gradient.data(), 2, 12}}), sw::BadInput);
        EXPECT_EQ(weights_of(*layer), before);
        static_cast<void>(layer->forward(batch_of(comm.rank())));
        const std::vector<float> zero(24, 0.0F);
        layer->backward({.pooled = {zero.data(), 2, 12}});
        EXPECT_EQ(layer->gradient_norm(), 0.0);
        EXPECT_EQ(layer->gradient_scale(), 1.0F);
        EXPECT_EQ(layer->steps(), 1);
    });
}

TEST(ClipNorm, CountsWhatItIsToldOnce) {
    sw::ThreadWorld world{sw::Topology{1, 2}};
    world.run([&](sw::ThreadCommunicator& comm) {
        const auto layer = sw::make_layer(comm, two_tables, {.optimizer = "sgd"}, {.clip_norm = 1.0F});
        sw::ExactSum others;
        others.add_squares(std::vector<float>{3.0F, 4.0F});
        const std::vector<float> zero(24, 0.0F);
        sw::ExactSum more;
        more.add_squares(std::vector<float>{12.0F});
        for (const double norm : {13.0, 0.0}) {  // of one backward alone
            if (norm != 0.0) layer->clip_with(others);
            if (norm != 0.0) layer->clip_with(more);
            static_cast<void>(layer->forward(batch_of(comm.rank())));
            layer->backward({.pooled = {zero.data(), 2, 12}});
            EXPECT_EQ(layer->gradient_norm(), norm);
        }
        const auto plain = sw::make_layer(comm, two_tables, {.optimizer = "sgd"});
        EXPECT_THROW(plain->clip_with(others), sw::BadInput);
    });
}

TEST(ClipNorm, OfRanksThatWereToldOtherSquaresIsAMismatch) {
    sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = {1, 2}, .deadline = std::chrono::seconds{20}}};
    EXPECT_THROW(world.run([](sw::ThreadCommunicator& comm) {
        const auto layer = sw::make_layer(comm, two_tables, {.optimizer = "sgd"}, {.clip_norm = 1.0F});
        sw::ExactSum others;
        others.add_squares(std::vector<float>{static_cast<float>(comm.rank())});
        layer->clip_with(others);
        static_cast<void>(layer->forward(batch_of(comm.rank())));
        const std::vector<float> zero(24, 0.0F);
        layer->backward({.pooled = {zero.data(), 2, 12}});
    }),
                 sw::Mismatch);
}

TEST(ClipNorm, ForgetsWhatItWasToldOfABackwardThatFails) {
    sw::ThreadWorld world{sw::Topology{1, 1}};
    world.run([](sw::ThreadCommunicator& comm) {
        const auto layer = sw::make_layer(comm, two_tables, {.optimizer = "sgd"}, {.clip_norm = 1.0F});
        sw::ExactSum others;
        others.add_squares(std::vector<float>{3.0F});
        layer->clip_with(others);
        static_cast<void>(layer->forward(batch_of(0)));
        const std::vector<float> nan(24, std::nanf(""));
        EXPECT_THROW(layer->backward({.pooled = {nan.data(), 2, 12}}), sw::BadInput);
        const std::vector<float> zero(24, 0.0F);
        static_cast<void>(layer->forward(batch_of(0)));
        layer->backward({.pooled = {zero.data(), 2, 12}});
        EXPECT_EQ(layer->gradient_norm(), 0.0);
    });
}

/// A rule of one's own with as many slots as it is told.
template <int Slots>
struct Own {
    static constexpr const char* name = "own";
    static constexpr int row_slots = Slots;
    static constexpr int element_slots = 0;
    static constexpr bool needs_row_norm = false;
    struct Row {};
    Row row(const sw::UpdateStep&, float*, double, int) const { return {}; }
    void element(const Row&, float&, float) const {}
};

TEST(TableSettings, OfARuleWithOtherSlotsAreRefused) {
    sw::ThreadWorld world{sw::Topology{1, 1}};
    world.run([](sw::ThreadCommunicator& comm) {
        sw::LayerOptions options;
        options.by_table["b"].rule = sw::make_row_rule(Own<1>{});
        sw::KnownPolicies known;
        known.add_optimizer(Own<0>{});
        EXPECT_THROW(static_cast<void>(sw::make_layer(comm, two_tables, {.optimizer = "own"}, options, known)),
                     sw::BadInput);
    });
}

}  // namespace
}  // namespace shardwise_test
