// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "shardwise/checkpoint/layer_checkpoint.hpp"
#include "shardwise/comm/all_reduce.hpp"
#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/dense/optimizer.hpp"
#include "shardwise/dense/parameter.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// How dense weights learn, of which every rank of a group has a copy.

namespace train_dlrm {

namespace sw = shardwise;

/// An optimizer of dense weights by name. Row-wise moments make no sense for them: they learn by Adagrad then.
class DenseRule {
  public:
    DenseRule(const std::string& optimizer, std::size_t elements, sw::MemoryAccount& memory)
        : rule_{make(optimizer, elements, memory)} {}

    void step(sw::ParameterSet& parameters, double rate) {
        std::visit([&](auto& rule) { rule.step(parameters.values(), parameters.gradients(), rate); }, rule_);
    }
    void set_steps(std::int64_t steps) {
        std::visit([&](auto& rule) { rule.set_steps(steps); }, rule_);
    }
    /// Moments a weight, and all of them, (moment, weight).
    [[nodiscard]] std::size_t moments() const {
        return std::holds_alternative<sw::DenseSgd>(rule_) ? 0 : std::holds_alternative<sw::DenseAdam>(rule_) ? 2 : 1;
    }
    [[nodiscard]] std::span<float> state() {
        return std::visit([](auto& rule) { return rule.state(); }, rule_);
    }

  private:
    using Rule = std::variant<sw::DenseSgd, sw::DenseAdagrad, sw::DenseAdam>;
    static Rule make(const std::string& optimizer, std::size_t elements, sw::MemoryAccount& memory) {
        if (optimizer == "sgd") return Rule{std::in_place_type<sw::DenseSgd>, elements, memory.tables()};
        if (optimizer == "adam") return Rule{std::in_place_type<sw::DenseAdam>, elements, memory.tables()};
        return Rule{std::in_place_type<sw::DenseAdagrad>, elements, memory.tables()};
    }
    Rule rule_;
};

/// Appends the weights of a set under their names, and moment i of weight w as `dense_state/w/<i>`.
inline void append_tensors(sw::Checkpoint& all, sw::ParameterSet& parameters, std::span<float> state,
                           std::size_t moments) {
    const std::span<float> values = parameters.values();
    for (const sw::Parameter& weight : parameters) {
        const std::vector<std::int64_t> shape{weight.rows, weight.columns};
        all.dense.push_back({weight.name, shape, weight.values()});
        const auto first = static_cast<std::size_t>(weight.values().data() - values.data());
        for (std::size_t i = 0; i < moments; ++i)
            all.dense.push_back({"dense_state/" + weight.name + "/" + std::to_string(i), shape,
                                 state.subspan(i * values.size() + first, weight.size())});
    }
}

/// Weights that the ranks of a group G have copies of: gradients are summed over the group, then all of them take the
/// same step. \tparam G  World, or OneTower
template <class G>
class Learner {
  public:
    Learner(sw::ParameterSet& parameters, const std::string& optimizer, sw::DensePrecision precision,
            sw::CommunicatorRef comm, const sw::Topology& topology, sw::MemoryAccount& memory)
        : parameters_{&parameters},
          rule_{optimizer, parameters.values().size(), memory},
          wide_{precision == sw::DensePrecision::wide},
          reduce_{comm, topology, memory.work()},
          wide_reduce_{comm, topology, memory.work()} {}

    /// Sends this rank's gradients on their way; they stay as they are until `finish`.
    void start() {
        if (wide_) {
            wide_reduce_.start(parameters_->wide_gradients());
        } else {
            reduce_.start(parameters_->gradients());
        }
    }
    void finish() {
        if (wide_) {
            wide_reduce_.finish();
            parameters_->round_gradients();
        } else {
            reduce_.finish();
        }
    }
    void step(double rate) { rule_.step(*parameters_, rate); }

    [[nodiscard]] sw::ParameterSet& parameters() noexcept { return *parameters_; }
    [[nodiscard]] const sw::ParameterSet& parameters() const noexcept { return *parameters_; }
    [[nodiscard]] DenseRule& rule() noexcept { return rule_; }

  private:
    sw::ParameterSet* parameters_;
    DenseRule rule_;
    bool wide_;
    sw::BasicTreeAllReduce<float, G> reduce_;
    sw::BasicTreeAllReduce<double, G> wide_reduce_;
};

}  // namespace train_dlrm
