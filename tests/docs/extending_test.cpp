// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// What docs/extending.md, sharding.md and optimizers.md show of extensions: an optimizer, a sharding, a step, a
/// communicator.

#include <chrono>
#include <cmath>
#include <numeric>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/shardwise.hpp"

namespace docs {
namespace {

namespace sw = shardwise;

/// v <- decay * v + g; w <- w - learning_rate * v.
struct Momentum {
    static constexpr const char* name = "momentum";
    static constexpr int row_slots = 0;
    static constexpr int element_slots = 1;  // v
    static constexpr bool needs_row_norm = false;
    struct Row {
        float learning_rate;
    };

    float decay = 0.9F;

    Row row(const sw::UpdateStep& step, float*, double, int) const { return {step.learning_rate}; }
    void element(const Row& row, float& weight, float gradient, float& velocity) const {
        velocity = std::fma(decay, velocity, gradient);
        weight = std::fma(-row.learning_rate, velocity, weight);
    }
};
static_assert(sw::SparseOptimizer<Momentum>);

TEST(Extending, AnOptimizer) {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        using Layer = sw::EmbeddingLayer<sw::Optimizer<Momentum>>;
        Layer layer{comm, {{.name = "t", .rows = 3, .dim = 1}}, {.learning_rate = {.base = 1}}, {.decay = 0.5F}};
        sw::JaggedBatch<int> batch;
        batch.samples = comm.rank() == 0 ? 1 : 0;
        batch.features = 1;
        batch.values.assign(static_cast<std::size_t>(batch.samples), 2);
        const float gradient = 1.0F;
        std::vector<float> seen;
        for (int step = 0; step < 3; ++step) {
            const auto out = layer.forward(batch.view());
            if (out.rows() == 1) seen.push_back(out(0, 0));
            layer.backward({&gradient, out.rows(), 1});
        }
        if (comm.rank() != 0) return;
        EXPECT_NEAR(seen[0] - seen[1], 1.0, 1e-6);
        EXPECT_NEAR(seen[1] - seen[2], 1.5, 1e-6);
    });
}

/// Rows dealt over the ranks of the first host; the other hosts own none.
struct FirstHost : sw::Row {
    static constexpr const char* name = "first_host";
    static constexpr int shards(const sw::Topology& t, int) noexcept { return t.ranks_per_host; }
};
static_assert(sw::ShardingPolicy<FirstHost>);

TEST(Extending, ASharding) {
    sw::ThreadWorld world{sw::Topology{.hosts = 2, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<sw::Sharding<FirstHost>> layer{comm, {{.name = "t", .rows = 7, .dim = 4}}};
        std::int64_t rows = 0;
        layer.for_each_shard([&](const sw::ShardView& shard, const auto&) { rows += shard.rows; });
        EXPECT_EQ(rows, comm.rank() == 0 ? 4 : comm.rank() == 1 ? 3 : 0);
        const sw::JaggedBatch<int> batch{.samples = 1, .features = 1, .values = {0, 1, 6}, .lengths = {3}};
        EXPECT_EQ(layer.forward(batch.view()).columns(), 4);
    });
}

TEST(Extending, NamesOfOnesOwn) {
    const std::vector<sw::TableConfig> tables{{.name = "item", .rows = 100, .dim = 4}};
    const sw::Topology cluster{.hosts = 2, .ranks_per_host = 2};
    const sw::JaggedBatch<int> batch{.samples = 3, .features = 1, .values = {1, 2, 3}};
    const std::vector batches(4, batch.view());

    sw::KnownPolicies known;
    known.add_sharding<FirstHost>().add_sharding<sw::Col<4>>().add_optimizer(Momentum{.decay = 0.5F});
    const sw::LayerNames names{.shardings = {"first_host"}, .optimizer = "momentum"};
    const sw::LayerBlueprint drawn = sw::draw_layer(cluster, tables, names, {}, known);
    const double exchange = sw::seconds(drawn.predict_cost(batches).segments, sw::Cluster{});

    const std::string wrong = known.refusal({.shardings = {"dp"}, .collective = "two_stage"});

    const sw::LayerNames constants{.optimizer = "adam", .rule = sw::make_row_rule(sw::Adam{.beta2 = 0.99})};

    EXPECT_GT(exchange, 0.0);
    EXPECT_EQ(drawn.static_bytes(2), 0);
    EXPECT_EQ(wrong, "no vector travels where all rows are replicated: use Collective<Flat>");
    EXPECT_EQ(known.traits(constants).rule->name(), "adam");
    EXPECT_EQ(sw::draw_layer(cluster, tables, {.shardings = {"col4"}}, {}, known).branches().front(), "col4");
    try {
        static_cast<void>(known.traits({.shardings = {"rows"}}));
        ADD_FAILURE() << "there is no such policy";
    } catch (const sw::BadInput& error) {
        EXPECT_STREQ(
            error.what(),
            "sharding 'rows': there is no such policy; give one of row, col, table, dp, flex, first_host, col4");
    }
}

/// Whole tables dealt over the ranks of each host; every host has all of them.
struct TablesOnEachHost : sw::Table {
    static constexpr const char* name = "tables_on_each_host";
    using home = sw::OneHost;
};
static_assert(sw::ShardingPolicy<TablesOnEachHost>);

TEST(Extending, AHome) {
    sw::ThreadWorld world{sw::Topology{.hosts = 2, .ranks_per_host = 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        sw::EmbeddingLayer<sw::Sharding<TablesOnEachHost>> layer{comm, {{.name = "t", .rows = 7, .dim = 4}}};
        layer.for_each_shard([&](const sw::ShardView& shard, const auto&) {
            EXPECT_EQ(comm.rank() % 2, 0);  // the first of each host has the only table
            EXPECT_EQ(shard.rows, 7);
            EXPECT_EQ(shard.copy, comm.rank() / 2);
            EXPECT_EQ(shard.copies, 2);
        });
        const sw::JaggedBatch<int> batch{.samples = 1, .features = 1, .values = {0, 1, 6}, .lengths = {3}};
        layer.backward(layer.forward(batch.view()));
        EXPECT_EQ(layer.forward(batch.view()).columns(), 4);

        // no vector crosses hosts forward
        const std::vector batches(4, batch.view());
        const sw::LayerCost cost = layer.predict_cost(batches);
        EXPECT_EQ(cost.forward.total().cross_host.payload, 0);
        EXPECT_GT(cost.backward.total().cross_host.payload, 0);
    });
}

/// What the steps of the plan below work on: one number a rank.
struct Numbers {
    struct Lanes {
        float value = 0.0F;
    };
    struct Cost {};
};
struct Local {};   // forms of the lane: a number of this rank,
struct Global {};  // and one that is the same on all

/// A local step: twice the number. It is its own adjoint.
struct Twice {
    template <class Form>
    using Out = Form;
    using Adjoint = sw::Plan<Twice>;
    using Uses = boost::mp11::mp_list<>;
    static std::string name() { return "Twice"; }

    template <class V>
    static void run(sw::StepEnv&, V& view) {
        view.lanes().value *= 2.0F;
    }
    static void shape(const sw::CostEnv&, Numbers::Cost&) {}
};

struct Forth {};
struct Back {};
/// An exchange: the sum over all ranks, whose adjoint is the sum of the gradients. Both keep a tape, and tapes are
/// found by type: hence the tag.
template <class Direction>
struct SumOverRanks {
    template <class Form>
    using Out = std::enable_if_t<std::is_same_v<Form, Local>, Global>;
    using Adjoint = sw::Plan<SumOverRanks<Back>>;
    using Uses = boost::mp11::mp_list<SumOverRanks>;
    using Crosses = sw::World;
    static std::string name() { return "SumOverRanks"; }

    struct Tape final : sw::Exchange {
        float* value = nullptr;
        std::vector<float> parts;  // (rank)

        sw::PartSize size(int) override { return {.payload = sizeof(float), .control = 0}; }
        void pack(int, sw::ByteWriter& to) override { to.put(*value); }
        std::int64_t expected(int) override { return sizeof(float); }
        void unpack(int peer, sw::ByteReader& from) override {
            parts[static_cast<std::size_t>(peer)] = from.get<float>();
        }
        void end() override { *value = std::accumulate(parts.begin(), parts.end(), 0.0F); }
    };

    template <class V>
    static sw::Exchange& begin(sw::StepEnv& env, V& view) {
        Tape& tape = view.template tape<SumOverRanks>();
        tape.value = &view.lanes().value;
        tape.parts.assign(static_cast<std::size_t>(env.topology.ranks()), 0.0F);
        tape.parts[static_cast<std::size_t>(env.rank)] = *tape.value;
        return tape;
    }
    static void shape(const sw::CostEnv& env, Numbers::Cost&, sw::TrafficMatrix& round) {
        for (int from = 0; from < env.topology.ranks(); ++from)
            for (int to = 0; to < env.topology.ranks(); ++to)
                if (from != to) round.at(from, to).payload += sizeof(float);
    }
};

TEST(Extending, AStep) {
    using Line = sw::Plan<Twice, SumOverRanks<Forth>>;
    static_assert(std::is_same_v<sw::FormAfter<Local, Line>, Global>);
    static_assert(std::is_same_v<sw::Adjoint<Line>, sw::Plan<SumOverRanks<Back>, Twice>>);

    const sw::Program program = sw::make_program<Numbers, Line>();
    sw::ThreadWorld world{sw::Topology{.hosts = 2, .ranks_per_host = 2}};
    world.run([&](sw::ThreadCommunicator& comm) {
        sw::CountingCommunicator counted{comm};
        sw::MemoryAccount memory;
        sw::Frame<Numbers::Lanes> frame{program};
        const sw::Itinerary itinerary{program, counted.topology(), counted.rank()};
        sw::Flight flight{itinerary, frame.parts(), counted, memory.work()};

        frame.lanes().value = static_cast<float>(comm.rank());
        flight.prepare(1);
        flight.start();
        flight.finish_forward();
        EXPECT_EQ(frame.lanes().value, 12.0F);  // 2 * (0 + 1 + 2 + 3)
        frame.lanes().value = 1.0F;             // the gradient of each rank's result
        flight.finish_backward();
        EXPECT_EQ(frame.lanes().value, 8.0F);

        sw::CostTree<Numbers::Cost> tree;
        sw::TrafficMatrix predicted{comm.topology()};
        for (const sw::SegmentCost& cost : sw::predict(program, comm.topology(), tree))
            predicted += cost.traffic;
        EXPECT_EQ(predicted.sent_by(comm.rank()), counted.sent().sent_by(comm.rank()));
    });
}

/// Posts every round a little later.
template <sw::Communicator C>
class DelayedCommunicator {
  public:
    DelayedCommunicator(C& below, std::chrono::microseconds delay) : below_{&below}, delay_{delay} {}

    [[nodiscard]] int rank() const { return below_->rank(); }
    [[nodiscard]] int size() const { return below_->size(); }
    [[nodiscard]] sw::Topology topology() const { return below_->topology(); }

    sw::Ticket post(const sw::Label& label, std::span<const sw::OutMessage> out, std::span<const sw::InMessage> in) {
        std::this_thread::sleep_for(delay_);
        return below_->post(label, out, in);
    }
    bool test(sw::Ticket ticket) { return below_->test(ticket); }
    void wait(sw::Ticket ticket) { below_->wait(ticket); }
    void abandon(sw::Ticket ticket) noexcept { below_->abandon(ticket); }
    void fail(const std::string& reason) { below_->fail(reason); }

  private:
    C* below_;
    std::chrono::microseconds delay_;
};
static_assert(sw::Communicator<DelayedCommunicator<sw::ThreadCommunicator>>);

TEST(Extending, ACommunicator) {
    sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 3}};
    world.run([](sw::ThreadCommunicator& below) {
        DelayedCommunicator comm{below, std::chrono::microseconds{100 * below.rank()}};
        sw::EmbeddingLayer<> layer{comm, {{.name = "t", .rows = 7, .dim = 4}}};
        const sw::JaggedBatch<int> batch{.samples = 1, .features = 1, .values = {3}};
        EXPECT_EQ(layer.forward(batch.view()).rows(), 1);
    });
}

}  // namespace
}  // namespace docs
