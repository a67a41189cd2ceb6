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
#include "shardwise/dense/sample_counts.hpp"
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
        if (precision != sw::DensePrecision::single)
            set.wide_gradients()[i] = static_cast<double>(gradient_of(rank, step, i));
        else
            set.gradients()[i] = gradient_of(rank, step, i);
}

/// Every rank's copy beside one that learns alone from the sums of its group's gradients.
/// \param groups  replica groups, the gradients of each with a weight of its own
template <class Optimizer, class G>
void expect_one_model(const sw::ReplicaGroups& groups, int hosts_per_tower, std::int64_t rows, std::int64_t columns,
                      sw::DensePrecision precision) {
    SCOPED_TRACE(testing::Message() << groups.world.hosts << " hosts of " << groups.world.ranks_per_host << ", " << rows
                                    << " x " << columns << ", " << groups.count() << " groups");
    sw::Topology topology = groups.inside_group();
    topology.hosts_per_tower = hosts_per_tower;
    const sw::Topology no_towers{.hosts = groups.world.hosts, .ranks_per_host = groups.world.ranks_per_host};
    const auto weight_of = [&](int rank) { return groups.count() == 1 ? 1 : 2 + groups.group_of(rank); };
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
        sw::DataParallel<Optimizer, G> training{set,          Optimizer{size, memory.tables()}, comm, topology, groups,
                                                memory.work()};
        EXPECT_EQ(training.precision(), precision);
        Optimizer optimizer{size, memory.tables()};
        std::int64_t allocations = 0;
        for (int step = 0; step < 4; ++step) {
            put_gradients(set, precision, comm.rank(), step);
            comm.reset();
            if (step % 2 == 0) {
                training.start(weight_of(comm.rank()));
                training.finish();
            } else {
                training.sum(weight_of(comm.rank()));
            }
            const sw::TrafficMatrix predicted = sw::predict_gradient_sum<G>(
                topology, groups, precision, [&](int) { return static_cast<std::int64_t>(size); });
            EXPECT_EQ(comm.sent().sent_by(comm.rank()), predicted.sent_by(comm.rank()));
            if constexpr (std::is_same_v<G, sw::World>) {
                EXPECT_EQ(training.predict_sum(), predicted);
            }
            for (std::size_t i = 0; i < size; ++i) {
                float sum = 0;
                for (int group = 0; group < groups.count(); ++group)
                    for (int member = 0; member < G::of(topology).size; ++member) {
                        const int index = G::of(topology).member(groups.index_of(comm.rank()), member);
                        const int rank = groups.rank_of(group, index);
                        sum += static_cast<float>(weight_of(rank)) * gradient_of(rank, step, i);
                    }
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
        for (const sw::DensePrecision precision :
             {sw::DensePrecision::single, sw::DensePrecision::blocks, sw::DensePrecision::wide}) {
            const std::int64_t rows = 1 + random.below(9);
            const std::int64_t columns = 1 + random.below(30);
            const sw::ReplicaGroups one = sw::ReplicaGroups::one({topology.hosts, topology.ranks_per_host});
            expect_one_model<sw::DenseSgd, sw::World>(one, topology.hosts_per_tower, rows, columns, precision);
            expect_one_model<sw::DenseAdam, sw::World>(one, topology.hosts_per_tower, rows, columns, precision);
            expect_one_model<sw::DenseAdagrad, sw::OneTower>(one, topology.hosts_per_tower, rows, columns, precision);
        }
}

TEST(data_parallel, modules_of_several_groups_learn_from_their_tower_and_its_copies) {
    Random random{5};
    using Placement = sw::GroupPlacement;
    for (const sw::Topology& topology :
         {sw::Topology{4, 1}, sw::Topology{2, 2}, sw::Topology{4, 2}, sw::Topology{1, 6}})
        for (const Placement placement : {Placement::across_hosts, Placement::inside_hosts})
            for (int count = 2; count <= topology.ranks(); ++count) {
                if (!sw::has_groups(topology, count, placement)) continue;
                const sw::ReplicaGroups groups = sw::replica_groups(topology, count, placement);
                for (const sw::DensePrecision precision :
                     {sw::DensePrecision::single, sw::DensePrecision::blocks, sw::DensePrecision::wide}) {
                    const std::int64_t rows = 1 + random.below(9);
                    const std::int64_t columns = 1 + random.below(30);
                    expect_one_model<sw::DenseAdagrad, sw::OneTower>(groups, 1, rows, columns, precision);
                    expect_one_model<sw::DenseSgd, sw::World>(groups, 1, rows, columns, precision);
                }
            }
}

TEST(data_parallel, samples_of_the_world_and_of_a_group) {
    const sw::ReplicaGroups groups = sw::replica_groups({2, 2}, 2, sw::GroupPlacement::inside_hosts);
    const std::vector<std::int64_t> samples{5, 0, 3, 0};  // of ranks 0 and 2, and of 1 and 3
    const sw::SampleCounts full = sw::count_samples(groups, 2, samples);
    EXPECT_EQ(full.world, 8);
    EXPECT_EQ(full.group, 8);
    EXPECT_EQ(full.to_group(), 1.0F);
    const sw::SampleCounts empty = sw::count_samples(groups, 1, samples);
    EXPECT_EQ(empty.world, 8);
    EXPECT_EQ(empty.group, 0);
    EXPECT_EQ(empty.to_group(), 1.0F);
    EXPECT_EQ(empty.to_world(), 0.0);
    const std::vector<std::int64_t> uneven{5, 1, 3, 3};
    const sw::SampleCounts some = sw::count_samples(groups, 3, uneven);
    EXPECT_EQ(some.group, 4);
    EXPECT_EQ(some.to_group(), 3.0F);
    EXPECT_EQ(some.to_world(), 4.0 / 12.0);
    const sw::SampleCounts nobody = sw::count_samples(groups, 0, std::vector<std::int64_t>(4));
    EXPECT_EQ(nobody.to_group(), 1.0F);
    EXPECT_EQ(nobody.to_world(), 1.0);
    const auto refused = [&](int rank, const std::vector<std::int64_t>& by_rank) {
        try {
            static_cast<void>(sw::count_samples(groups, rank, by_rank));
        } catch (const sw::BadInput& error) {
            return std::string{error.what()};
        }
        return std::string{};
    };
    EXPECT_EQ(refused(0, {1, 2, 3}),
              "samples of rank 0, of 3 ranks: the world has 4 ranks, give a number of samples for each");
    EXPECT_NE(refused(4, samples).find("samples of rank 4"), std::string::npos);
    EXPECT_EQ(refused(0, {1, 2, -3, 4}), "rank 2 has -3 samples: give 0 or more");
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
            if (precision != sw::DensePrecision::single) set.wide_gradients()[0] = static_cast<double>(mine);
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

TEST(data_parallel, refuses_the_topology_of_the_world_beside_groups) {
    const sw::Topology all{2, 2};
    sw::ThreadWorld world{all};
    world.run([&](sw::ThreadCommunicator& comm) {
        const sw::ReplicaGroups groups = sw::replica_groups(all, 2, sw::GroupPlacement::across_hosts);
        try {
            const sw::TreeAllReduce sum{comm, all, groups};
            FAIL();
        } catch (const sw::BadInput& error) {
            EXPECT_EQ(std::string{error.what()},
                      "sums in groups of 2 ranks over a topology of 4: give that of a group, such as "
                      "LayerBase::topology()");
        }
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
