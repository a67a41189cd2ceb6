// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/checkpoint/dense_tensors.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "checkpoint/support.hpp"
#include "shardwise/checkpoint/layer_checkpoint.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/dense/any_optimizer.hpp"

namespace {

namespace sw = shardwise;

/// A model of two matrices whose numbers of elements are no multiples of 16, and what trains it.
struct Model {
    sw::MemoryAccount memory;
    sw::ParameterSet parameters{memory.tables()};
    sw::DataParallel<sw::AnyDenseOptimizer> training;

    Model(const std::string& optimizer, sw::CommunicatorRef comm)
        : training{made(parameters), {optimizer, parameters.values().size(), memory.tables()}, comm, memory.work()} {}

    static sw::ParameterSet& made(sw::ParameterSet& parameters) {
        parameters.reserve("a", 3, 7);
        parameters.reserve("b", 1, 5);
        parameters.allocate();
        return parameters;
    }
    /// Steps first + 1 to last.
    void train(int first, int last) {
        for (int step = first; step < last; ++step) {
            for (const sw::Parameter& parameter : parameters)
                for (std::size_t i = 0; i < parameter.size(); ++i)
                    parameter.gradients()[i] = static_cast<float>((i * 3 + static_cast<std::size_t>(step)) % 7) - 2.0F;
            training.sum();
            training.step(0.1);
        }
    }
};

TEST(dense_tensors, have_the_names_shapes_and_memory_of_parameters_and_moments) {
    sw::ThreadWorld world{sw::Topology{1, 1}};
    world.run([](sw::ThreadCommunicator& comm) {
        Model model{"adam", comm};
        sw::Checkpoint all;
        sw::append_tensors(all, model.training);
        const std::vector<std::string> names{"a", "dense_state/a/0", "dense_state/a/1",
                                             "b", "dense_state/b/0", "dense_state/b/1"};
        ASSERT_EQ(all.dense.size(), names.size());
        const std::span<float> values = model.parameters.values();
        const std::span<float> state = model.training.optimizer().state();
        const std::size_t first_of_b = 32;  // parameters start at multiples of 16
        for (std::size_t i = 0; i < names.size(); ++i) {
            const bool is_b = i >= 3;
            EXPECT_EQ(all.dense[i].name, names[i]);
            EXPECT_EQ(all.dense[i].shape, (is_b ? std::vector<std::int64_t>{1, 5} : std::vector<std::int64_t>{3, 7}));
            EXPECT_EQ(all.dense[i].values.size(), is_b ? 5U : 21U);
            const float* from = i % 3 == 0 ? values.data() : state.data() + (i % 3 - 1) * values.size();
            EXPECT_EQ(all.dense[i].values.data(), from + (is_b ? first_of_b : 0));
        }
    });
}

TEST(dense_tensors, training_goes_on_from_a_file_as_if_it_had_never_stopped) {
    for (const std::string optimizer : {"sgd", "adagrad", "adam"}) {
        SCOPED_TRACE(optimizer);
        const checkpoint_test::TemporaryFile file{"dense_tensors"};
        std::vector<float> expected;
        sw::ThreadWorld two{sw::Topology{1, 2}};
        two.run([&](sw::ThreadCommunicator& comm) {
            Model model{optimizer, comm};
            model.train(0, 3);
            sw::Checkpoint all;
            sw::append_tensors(all, model.training);
            sw::save_checkpoint(comm, file.path(), all);
            model.train(3, 6);
            if (comm.rank() == 0) expected.assign(model.parameters.values().begin(), model.parameters.values().end());
        });
        sw::ThreadWorld again{sw::Topology{2, 1}};
        again.run([&](sw::ThreadCommunicator& comm) {
            Model model{optimizer, comm};
            sw::Checkpoint all;
            sw::append_tensors(all, model.training);
            sw::load_checkpoint(comm, file.path(), all);
            model.training.optimizer().set_steps(3);
            model.train(3, 6);
            EXPECT_TRUE(std::ranges::equal(model.parameters.values(), expected));
        });
    }
}

}  // namespace
