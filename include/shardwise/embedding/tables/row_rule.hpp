// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "shardwise/core/config.hpp"
#include "shardwise/core/digest.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/kernels/columns.hpp"
#include "shardwise/embedding/tables/store.hpp"
#include "shardwise/optimizer/moment_scale.hpp"
#include "shardwise/optimizer/optimizer.hpp"

/// \file
/// A sparse optimizer as a value: its type is known where it is named, and nowhere behind that.

namespace shardwise::inline SHARDWISE_ABI {

/// A row that is about to be updated.
struct TouchedRow {
    LocalRow row = 0;
    const float* gradient = nullptr;  ///< (dim): a sum, or the one term of it: -0.0 there is still +0.0 in the sum
    double sum_of_squares = 0;        ///< of the whole row's gradient, where the rule needs it
};

/// A SparseOptimizer with its constants, its type forgotten.
class RowRule {
  public:
    static constexpr const char* state_name = "RowRule";
    static constexpr int most_rows = 64;  ///< that `apply` takes at a time: 32 to 256 are as fast, fewer are slower

    virtual ~RowRule() = default;
    [[nodiscard]] virtual std::string name() const = 0;
    [[nodiscard]] virtual int element_slots() const = 0;
    [[nodiscard]] virtual int row_slots() const = 0;
    [[nodiscard]] virtual bool needs_row_norm() const = 0;
    /// Whether it changes rows.
    [[nodiscard]] virtual bool learns() const = 0;
    /// The constant `moment_scale` of a rule that has one: what it divides its moment by before the root.
    [[nodiscard]] virtual std::optional<float> moment_scale() const = 0;
    /// The same rule with another. \throws BadInput for a rule that has none
    [[nodiscard]] virtual std::shared_ptr<const RowRule> with_moment_scale(float scale) const = 0;
    /// Of the constants of a rule that has `add_to(Digest&)`; of none otherwise.
    [[nodiscard]] virtual std::int64_t digest() const = 0;
    /// Updates up to most_rows rows of a shard. They go through each stage together, so that the core works on one
    /// while it waits for another. \param table_dim  columns of the whole row
    virtual void apply(const UpdateStep& step, ShardStore& shard, int table_dim,
                       std::span<const TouchedRow> rows) const = 0;
};

namespace detail {

template <SparseOptimizer Rule>
class RowRuleOf final : public RowRule {
  public:
    explicit RowRuleOf(const Rule& rule) : rule_{rule} {}
    [[nodiscard]] std::string name() const override { return Rule::name; }
    [[nodiscard]] int element_slots() const override { return Rule::element_slots; }
    [[nodiscard]] int row_slots() const override { return Rule::row_slots; }
    [[nodiscard]] bool needs_row_norm() const override { return Rule::needs_row_norm; }
    [[nodiscard]] bool learns() const override { return rule_learns<Rule>; }
    [[nodiscard]] std::optional<float> moment_scale() const override {
        if constexpr (ScaledMoment<Rule>)
            return rule_.moment_scale;
        else
            return std::nullopt;
    }
    [[nodiscard]] std::shared_ptr<const RowRule> with_moment_scale(float scale) const override {
        if constexpr (ScaledMoment<Rule>) {
            Rule other = rule_;
            other.moment_scale = scale;
            return std::make_shared<const RowRuleOf>(other);
        } else {
            throw BadInput{concat(
                {"optimizer '", std::string{Rule::name}, "' has no moment to scale: leave the moment scale out"})};
        }
    }
    [[nodiscard]] std::int64_t digest() const override {
        Digest digest;
        if constexpr (requires { rule_.add_to(digest); }) rule_.add_to(digest);
        return digest.bits16();
    }
    void apply(const UpdateStep& step, ShardStore& shard, int table_dim,
               std::span<const TouchedRow> rows) const override {
        const Rule rule = rule_;  // copies: floats that are written cannot change these
        const UpdateStep now = step;
        std::array<typename Rule::Row, most_rows> shared;
        for (std::size_t i = 0; i < rows.size(); ++i)
            shared[i] = rule.row(now, shard.row_state.data() + static_cast<std::int64_t>(rows[i].row) * Rule::row_slots,
                                 rows[i].sum_of_squares, table_dim);
        switch (shard.dim) {
            case 16:
                return update_all<16>(rule, shared, shard, rows);
            case 64:
                return update_all<64>(rule, shared, shard, rows);
            case 128:
                return update_all<128>(rule, shared, shard, rows);
            default:
                return update_all<0>(rule, shared, shard, rows);
        }
    }

  private:
    using Shared = std::array<typename Rule::Row, most_rows>;
    template <int Dim>
    static void update_all(const Rule& rule, const Shared& shared, ShardStore& shard,
                           std::span<const TouchedRow> rows) {
        float* const weights = shard.weights.data();
        float* const state = shard.element_state.data();
        const int dim = Dim > 0 ? Dim : shard.dim;
        for (std::size_t i = 0; i < rows.size(); ++i)
            update<Dim>(rule, shared[i], weights, state, dim, rows[i], std::make_index_sequence<Rule::element_slots>{});
    }
    template <int Dim, std::size_t... Slot>
    [[gnu::always_inline]] static void update(const Rule& rule, const typename Rule::Row& shared, float* all_weights,
                                              float* all_state, int any_dim, const TouchedRow& of,
                                              std::index_sequence<Slot...>) {
        const auto row = static_cast<std::int64_t>(of.row);
        const int dim = Dim > 0 ? Dim : any_dim;
        const float* __restrict gradient = of.gradient;
        float* __restrict weights = all_weights + row * dim;
        [[maybe_unused]] float* __restrict state = all_state + row * dim * Rule::element_slots;
        const auto column = [&](int d) __attribute__((always_inline)) {
            rule.element(shared, weights[d], 0.0F + gradient[d], state[static_cast<int>(Slot) * dim + d]...);
        };
        if constexpr (Dim == 16) {
            // Unrolled, as at -O3, GCC 12 takes columns one by one. nvcc does not know the pragma.
#if !defined(__CUDACC__)
#pragma GCC unroll 1
#endif
            for (int d = 0; d < Dim; ++d)
                column(d);
        } else {
            for_columns(dim, [&](int first, auto count) {
                for (int d = first; d < first + count; ++d)
                    column(d);
            });
        }
    }

    Rule rule_;
};

}  // namespace detail

/// A rule with these constants. \throws BadInput for those that its `check()` refuses
template <SparseOptimizer Rule>
[[nodiscard]] std::shared_ptr<const RowRule> make_row_rule(const Rule& rule) {
    check_rule(rule);
    return std::make_shared<const detail::RowRuleOf<Rule>>(rule);
}

/// The rule as a layer of so many groups uses it: a moment scale that was left open is their number.
/// \throws BadInput for one outside of (0, groups], and without groups for any other than 1
[[nodiscard]] inline std::shared_ptr<const RowRule> for_groups(std::shared_ptr<const RowRule> rule, int groups) {
    const std::optional<float> asked = rule->moment_scale();
    if (!asked) return rule;
    if (*asked == as_many_as_groups) return rule->with_moment_scale(static_cast<float>(groups));
    const bool fits = groups == 1 ? *asked == 1.0F : *asked > 0.0F && *asked <= static_cast<float>(groups);
    detail::require_constant(rule->name(), "moment_scale", static_cast<double>(*asked), fits,
                             groups == 1 ? "1 where ranks form no groups, or more groups"
                                         : concat({"a number above 0, up to the ", groups, " groups"}).c_str());
    return rule;
}

}  // namespace shardwise::inline SHARDWISE_ABI
