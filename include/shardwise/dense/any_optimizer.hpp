// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>
#include <variant>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/dense/optimizer.hpp"

/// \file
/// An optimizer of dense parameters that is chosen at run time.

namespace shardwise::inline SHARDWISE_ABI {

/// DenseSgd, DenseAdagrad or DenseAdam, by name, each with its default settings: the same bits as that type. Satisfies
/// DenseOptimizer. Not collective; allocates when constructed alone.
class AnyDenseOptimizer {
  public:
    /// \param name      sgd, adagrad or adam
    /// \param elements  of the parameters, ParameterSet::values().size()
    /// \param resource  where the state lies: a MemoryAccount's `tables()`
    /// \throws BadInput for another name
    AnyDenseOptimizer(const std::string& name, std::size_t elements, std::pmr::memory_resource& resource)
        : rule_{make(name, elements, resource)} {}

    /// \param values, gradients  as many as `elements` \param learning_rate  of this step
    void step(std::span<float> values, std::span<const float> gradients, double learning_rate) {
        std::visit([&](auto& rule) { rule.step(values, gradients, learning_rate); }, rule_);
    }
    /// (moments, elements).
    [[nodiscard]] std::span<float> state() noexcept {
        return std::visit([](auto& rule) { return rule.state(); }, rule_);
    }
    [[nodiscard]] std::size_t moments() const noexcept {
        return std::visit([](const auto& rule) { return rule.moments(); }, rule_);
    }
    [[nodiscard]] std::int64_t steps() const noexcept {
        return std::visit([](const auto& rule) { return rule.steps(); }, rule_);
    }
    void set_steps(std::int64_t steps) noexcept {
        std::visit([&](auto& rule) { rule.set_steps(steps); }, rule_);
    }

  private:
    using Rule = std::variant<DenseSgd, DenseAdagrad, DenseAdam>;
    static Rule make(const std::string& name, std::size_t elements, std::pmr::memory_resource& resource) {
        if (name == "sgd") return Rule{std::in_place_type<DenseSgd>, elements, resource};
        if (name == "adagrad") return Rule{std::in_place_type<DenseAdagrad>, elements, resource};
        if (name == "adam") return Rule{std::in_place_type<DenseAdam>, elements, resource};
        throw BadInput{concat({"dense optimizer '", name, "': there is none; give one of sgd, adagrad, adam"})};
    }

    Rule rule_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
