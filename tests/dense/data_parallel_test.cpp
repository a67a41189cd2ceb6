// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/dense/data_parallel.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "dense/support.hpp"
#include "shardwise/comm/counting.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/dense/any_optimizer.hpp"
#include "shardwise/plan/memory.hpp"

namespace dense_test {
namespace {

namespace sw = shardwise;

/// A gradient that is a small whole number, so that any sum of some is exact.
float gradient_of(int rank, int step, std::size_t element) {
    return static_cast<float>((static_cast<std::size_t>(rank) * 7 + static_cast<std::size_t>(step) * 5 + element) %
                              23) -
           11.0F;
}

/// Puts this rank's gradients where layers of that precision put them.
void put_gradients(sw::ParameterSet& set, sw::DensePrecision precision, int rank, int step) {
    for (std::size_t i = 0; i < set.values().size(); ++i)
        if (precision == sw::DensePrecision::wide)
            set.wide_gradients()[i] = static_cast<double>(gradient_of(rank, step, i));
        else
            set.gradients()[i] = gradient_of(rank, step, i);
}

/// Every rank's copy beside one that learns alone from the sums of its group's gradients.
template <class Optimizer, class G>
void expect_one_model(const sw::Topology& topology, std::int64_t rows, std::int64_t columns,
                      sw::DensePrecision precision) {
    SCOPED_TRACE(testing::Message() << topology.hosts << " hosts of " << topology.ranks_per_host << ", " << rows
                                    << " x " << columns);
    const sw::Topology no_towers{.hosts = topology.hosts, .ranks_per_host = topology.ranks_per_host};
    sw::ThreadWorld world{no_towers};
    world.run([&](sw::ThreadCommunicator& below) {
        sw::CountingCommunicator comm{below};
        sw::MemoryAccount memory;
        sw::ParameterSet set{memory.tables()};
        sw::ParameterSet alone{memory.tables()};
        for (sw::ParameterSet* parameters : {&set, &alone}) {
            parameters->reserve("weight", rows, columns);
            parameters->reserve("bias", 1, rows);
            parameters->allocate(precision);
        }
        const std::size_t size = set.values().size();
        sw::DataParallel<Optimizer, G> training{set, Optimizer{size, memory.tables()}, comm, topology, memory.work()};
        EXPECT_EQ(training.precision(), precision);
        Optimizer optimizer{size, memory.tables()};
        std::int64_t allocations = 0;
        for (int step = 0; step < 4; ++step) {
            put_gradients(set, precision, comm.rank(), step);
            comm.reset();
            if (step % 2 == 0) {
                training.start();
                training.finish();
            } else {
                training.sum();
            }
            const sw::TrafficMatrix predicted =
                sw::predict_gradient_sum<G>(topology, precision, [&](int) { return static_cast<std::int64_t>(size); });
            EXPECT_EQ(comm.sent().sent_by(comm.rank()), predicted.sent_by(comm.rank()));
            if constexpr (std::is_same_v<G, sw::World>) {
                EXPECT_EQ(training.predict_sum(), predicted);
            }
            for (std::size_t i = 0; i < size; ++i) {
                float sum = 0;
                for (int index = 0; index < G::of(topology).size; ++index)
                    sum += gradient_of(G::of(topology).member(comm.rank(), index), step, i);
                alone.gradients()[i] = sum;
            }
            training.step(0.5 / (step + 1));
            optimizer.step(alone.values(), alone.gradients(), 0.5 / (step + 1));
            EXPECT_TRUE(std::ranges::equal(set.gradients(), alone.gradients()));
            EXPECT_TRUE(std::ranges::equal(set.values(), alone.values()));
            EXPECT_TRUE(std::ranges::equal(training.optimizer().state(), optimizer.state()));
            if (step > 0) {
                EXPECT_EQ(memory.allocations(), allocations);
            }
            allocations = memory.allocations();
        }
        EXPECT_EQ(training.optimizer().steps(), 4);
    });
}

TEST(data_parallel, all_copies_learn_from_the_sum_over_their_group) {
    Random random{3};
    for (const sw::Topology& topology : {sw::Topology{1, 1}, sw::Topology{1, 3}, sw::Topology{4, 1}, sw::Topology{2, 2},
                                         sw::Topology{3, 2}, sw::Topology{4, 2, 2}})
        for (const sw::DensePrecision precision : {sw::DensePrecision::single, sw::DensePrecision::wide}) {
            const std::int64_t rows = 1 + random.below(9);
            const std::int64_t columns = 1 + random.below(30);
            expect_one_model<sw::DenseSgd, sw::World>(topology, rows, columns, precision);
            expect_one_model<sw::DenseAdam, sw::World>(topology, rows, columns, precision);
            expect_one_model<sw::DenseAdagrad, sw::OneTower>(topology, rows, columns, precision);
        }
}

TEST(data_parallel, a_wide_sum_is_rounded_once) {
    sw::ThreadWorld world{sw::Topology{1, 3}};
    world.run([](sw::ThreadCommunicator& comm) {
        sw::MemoryAccount memory;
        const auto summed = [&](sw::DensePrecision precision) {
            sw::ParameterSet set{memory.tables()};
            set.reserve("weight", 1, 1);
            set.allocate(precision);
            sw::DataParallel<sw::DenseSgd> training{set, {set.values().size(), memory.tables()}, comm, memory.work()};
            const float mine = comm.rank() == 0 ? 16777216.0F : 1.0F;  // two of them are one unit of the last place
            set.gradients()[0] = mine;
            if (precision == sw::DensePrecision::wide) set.wide_gradients()[0] = static_cast<double>(mine);
            training.sum();
            return set.gradients()[0];
        };
        EXPECT_EQ(summed(sw::DensePrecision::wide), 16777218.0F);
        EXPECT_EQ(summed(sw::DensePrecision::single), 16777216.0F);
    });
}

TEST(data_parallel, other_work_goes_on_during_the_sum) {
    sw::ThreadWorld world{sw::Topology{2, 2}};
    world.run([](sw::ThreadCommunicator& comm) {
        sw::MemoryAccount memory;
        sw::ParameterSet set{memory.tables()};
        set.reserve("weight", 3, 5);
        set.allocate();
        sw::DataParallel<sw::AnyDenseOptimizer> training{
            set, {"sgd", set.values().size(), memory.tables()}, comm, memory.work()};
        put_gradients(set, sw::DensePrecision::single, comm.rank(), 0);
        training.start();
        std::vector<float> other{1.0F};
        sw::TreeAllReduce{comm}(other);
        EXPECT_EQ(other[0], 4.0F);
        training.finish();
        for (std::size_t i = 0; i < set.values().size(); ++i)
            EXPECT_EQ(set.gradients()[i],
                      gradient_of(0, 0, i) + gradient_of(1, 0, i) + gradient_of(2, 0, i) + gradient_of(3, 0, i));
    });
}

TEST(data_parallel, refuses_parameters_that_are_not_allocated) {
    sw::ThreadWorld world{sw::Topology{1, 1}};
    world.run([](sw::ThreadCommunicator& comm) {
        sw::MemoryAccount memory;
        sw::ParameterSet set{memory.tables()};
        set.reserve("weight", 3, 5);
        try {
            const sw::DataParallel<sw::DenseSgd> training{set, {0, memory.tables()}, comm, memory.work()};
            FAIL();
        } catch (const sw::BadInput& error) {
            EXPECT_NE(std::string{error.what()}.find("allocate the set first"), std::string::npos);
        }
    });
}

}  // namespace
}  // namespace dense_test
