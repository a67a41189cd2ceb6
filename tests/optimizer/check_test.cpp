// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/optimizer/adagrad.hpp"
#include "shardwise/optimizer/adam.hpp"
#include "shardwise/optimizer/optimizer.hpp"
#include "shardwise/optimizer/rowwise_adagrad.hpp"
#include "shardwise/optimizer/sgd.hpp"
#include "shardwise/sharding/table.hpp"

/// \file
/// Constants that make no rule are refused by name, before a table is made.

namespace shardwise_test {
namespace {

namespace sw = shardwise;

template <class Make>
std::string message(Make make) {
    try {
        make();
    } catch (const sw::BadInput& error) {
        return error.what();
    }
    return {};
}

template <class Rule>
std::string complaint(const Rule& rule) {
    return message([&] { sw::check_rule(rule); });
}

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

TEST(CheckRule, PassesWhatPyTorchPasses) {
    EXPECT_EQ(complaint(sw::Sgd{}), "");  // has nothing to check
    EXPECT_EQ(complaint(sw::Adagrad{}), "");
    EXPECT_EQ(complaint(sw::Adagrad{.epsilon = 0.0F}), "");
    EXPECT_EQ(complaint(sw::RowwiseAdagrad<>{}), "");
    EXPECT_EQ(complaint(sw::RowwiseAdagrad<>{.epsilon = 0.0F}), "");
    EXPECT_EQ(complaint(sw::Adam{}), "");
    EXPECT_EQ(complaint(sw::Adam{.beta1 = 0.0, .beta2 = 0.0, .epsilon = 0.0F}), "");
}

TEST(CheckRule, NamesRuleFieldValueAndWhatIsAllowed) {
    const std::string epsilon = ": give a finite number, 0 or more";
    const std::string beta = ": give a number from 0 to below 1";
    EXPECT_EQ(complaint(sw::Adagrad{.epsilon = -1e-10F}), "optimizer 'adagrad': epsilon is -1e-10" + epsilon);
    EXPECT_EQ(complaint(sw::Adagrad{.epsilon = nan}), "optimizer 'adagrad': epsilon is nan" + epsilon);
    EXPECT_EQ(complaint(sw::Adagrad{.epsilon = infinity}), "optimizer 'adagrad': epsilon is inf" + epsilon);
    EXPECT_EQ(complaint(sw::RowwiseAdagrad<>{.epsilon = -1.0F}),
              "optimizer 'rowwise_adagrad': epsilon is -1" + epsilon);
    EXPECT_EQ(complaint(sw::RowwiseAdagrad<sw::MeanOfSquares>{.epsilon = nan}),
              "optimizer 'rowwise_adagrad_mean': epsilon is nan" + epsilon);
    EXPECT_EQ(complaint(sw::Adam{.beta1 = 1.0}), "optimizer 'adam': beta1 is 1" + beta);
    EXPECT_EQ(complaint(sw::Adam{.beta1 = -0.5}), "optimizer 'adam': beta1 is -0.5" + beta);
    EXPECT_EQ(complaint(sw::Adam{.beta2 = 2.0}), "optimizer 'adam': beta2 is 2" + beta);
    EXPECT_EQ(complaint(sw::Adam{.beta2 = static_cast<double>(nan)}), "optimizer 'adam': beta2 is nan" + beta);
    EXPECT_EQ(complaint(sw::Adam{.epsilon = nan}), "optimizer 'adam': epsilon is nan" + epsilon);
}

/// A rule of the user's own that checks its constant.
struct Scaled : sw::Sgd {
    float scale = 1.0F;
    void check() const {
        if (scale == 0.0F) throw sw::BadInput{"scaled: scale is 0: give another number"};
    }
};

// Where the layer is drawn, and where it is made.
template <class Rule>
void expect_refused(const Rule& rule, const std::string& text) {
    using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Table>, sw::Optimizer<Rule>>;
    const std::vector<sw::TableConfig> tables{{.name = "t", .rows = 10, .dim = 4}};
    const sw::Topology topology{1, 2};
    EXPECT_EQ(message([&] { static_cast<void>(Layer::blueprint(topology, tables, {}, rule)); }), text);
    sw::ThreadWorld world{topology};
    world.run([&](sw::ThreadCommunicator& comm) {
        EXPECT_EQ(message([&] { Layer{comm, tables, {}, rule}; }), text) << comm.rank();
    });
}

struct Named : Scaled {
    static constexpr const char* name = "named";
};

TEST(CheckRule, ValuesOfRulesAreAskedToo) {
    const std::string text = "optimizer 'adam': beta2 is 7: give a number from 0 to below 1";
    EXPECT_EQ(message([] { static_cast<void>(sw::make_row_rule(sw::Adam{.beta2 = 7})); }), text);
    Named zero;
    zero.scale = 0.0F;
    EXPECT_EQ(message([&] { sw::KnownPolicies{}.add_optimizer(zero); }), "scaled: scale is 0: give another number");
}

/// Rules keep their rows in an array that is filled in a loop.
struct FixedRow : sw::Sgd {
    struct Row {
        explicit Row(float s) : step{s} {}
        float step;
    };
    [[nodiscard]] Row row(const sw::UpdateStep& step, float*, double, int) const { return Row{step.learning_rate}; }
    static void element(const Row& row, float& weight, float gradient) { weight -= row.step * gradient; }
};
static_assert(sw::SparseOptimizer<sw::Sgd> && !sw::SparseOptimizer<FixedRow>);

TEST(CheckRule, LayersAskTheirRule) {
    expect_refused(sw::Adam{.beta2 = 2.0}, "optimizer 'adam': beta2 is 2: give a number from 0 to below 1");
    Scaled zero;
    zero.scale = 0.0F;
    expect_refused(zero, "scaled: scale is 0: give another number");
    expect_refused(Scaled{}, "");
}

}  // namespace
}  // namespace shardwise_test
