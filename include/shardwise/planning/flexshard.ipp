// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/core/at.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/planning/flexshard.hpp"

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// Moves rows from Row into another tier, in the merged order.
class TierWalk {
  public:
    TierWalk(const MergedRows& rows, const RowMemory& memory) : rows_{rows}, memory_{memory} {
        plan_.tables.resize(rows.tables().size());
        for (std::size_t t = 0; t < plan_.tables.size(); ++t)
            plan_.tables[t].row = {rows.tables()[t].distribution.rows(), rows.tables()[t].distribution.lookups()};
    }

    /// Takes the rows that the tier `pays` for, and are in none yet, until the next chunk would exceed the budget.
    /// \param pays  (dim, p) to bool; where it holds it holds for higher p
    template <class Pays>
    void take(Strategy strategy, TierRows TableTiers::*tier, double budget, const Pays& pays) {
        std::vector<std::int64_t> taken(plan_.tables.size());  // rows that stand in the runs to come and are taken
        for (std::size_t t = 0; t < taken.size(); ++t)
            taken[t] = rows_.tables()[t].distribution.rows() - plan_.tables[t].row.rows;
        for (const MergedRows::Run& run : rows_.runs()) {
            const std::int64_t skipped = std::min(run.rows, at(taken, run.table));
            at(taken, run.table) -= skipped;
            const std::int64_t here = run.rows - skipped;
            const double dim = rows_.dim(run);
            if (here == 0 || !run.replicable || !pays(dim, run.p)) continue;
            const double more = memory_.bytes(strategy, dim, run.p) - memory_.bytes(Strategy::row, dim, run.p);
            std::int64_t fit = here;
            if (more > 0.0 && plan_.net_bytes + more * static_cast<double>(here) > budget) {
                const double chunks =
                    std::floor((budget - plan_.net_bytes) / (more * static_cast<double>(rows_.chunk())));
                fit = here < rows_.chunk() ? 0 : rows_.chunk() * static_cast<std::int64_t>(std::max(0.0, chunks));
                while (fit > 0 && plan_.net_bytes + more * static_cast<double>(fit) > budget)
                    fit -= rows_.chunk();  // the quotient was rounded up
            }
            TableTiers& table = at(plan_.tables, run.table);
            const double lookups = run.p * static_cast<double>(fit);
            (table.*tier).rows += fit;
            (table.*tier).lookups += lookups;
            table.row.rows -= fit;
            table.row.lookups = table.row.rows == 0 ? 0.0 : std::max(0.0, table.row.lookups - lookups);
            plan_.net_bytes += more * static_cast<double>(fit);
            if (fit != here) return;
        }
    }

    [[nodiscard]] const FlexShardPlan& plan() const noexcept { return plan_; }

  private:
    const MergedRows& rows_;
    const RowMemory& memory_;
    FlexShardPlan plan_;
};

/// A plan with each row where `costs(strategy, dim, p)` is least; of equal costs the more replicated one for DP, Row
/// for Flex.
template <class Costs>
FlexShardPlan plan_of_least(const MergedRows& rows, const RowMemory& memory, const FlexShardOptions& options,
                            const Costs& costs) {
    TierWalk walk{rows, memory};
    const double all = std::numeric_limits<double>::infinity();
    if (options.dp)
        walk.take(Strategy::dp, &TableTiers::dp, all, [&](double dim, double p) {
            const double dp = costs(Strategy::dp, dim, p);
            return dp <= costs(Strategy::row, dim, p) && (!options.flex || dp <= costs(Strategy::flex, dim, p));
        });
    if (options.flex)
        walk.take(Strategy::flex, &TableTiers::flex, all,
                  [&](double dim, double p) { return costs(Strategy::flex, dim, p) < costs(Strategy::row, dim, p); });
    return walk.plan();
}

[[nodiscard]] SHARDWISE_INLINE FlexShardPlan plan_of_least_memory(const MergedRows& rows, const RowMemory& memory,
                                                                  const FlexShardOptions& options) {
    return plan_of_least(rows, memory, options, memory.bytes);
}

[[nodiscard]] SHARDWISE_INLINE FlexShardPlan plan_of_least_seconds(const MergedRows& rows, const Scaling& scaling,
                                                                   const RowMemory& memory,
                                                                   const FlexShardOptions& options) {
    return plan_of_least(rows, memory, options, [&](Strategy strategy, double dim, double p) {
        return *row_seconds(scaling, strategy, dim, p);
    });
}

/// DP down to the cut, then Flex, both as far as the budget goes and communication pays.
[[nodiscard]] SHARDWISE_INLINE FlexShardPlan plan_within(const MergedRows& rows, const Scaling& scaling,
                                                         const RowMemory& memory, const FlexShardOptions& options,
                                                         double budget) {
    const auto sooner_than_row = [&](Strategy strategy, double dim, double p) {
        const auto seconds = row_seconds(scaling, strategy, dim, p);
        const auto in_row = row_seconds(scaling, Strategy::row, dim, p);
        return !seconds || !in_row || *seconds <= *in_row;
    };
    const Strategy cut = options.cut == FlexShardCut::row ? Strategy::row : Strategy::flex;
    TierWalk walk{rows, memory};
    if (options.dp)
        walk.take(Strategy::dp, &TableTiers::dp, budget, [&](double dim, double p) {
            return sooner_than_row(Strategy::dp, dim, p) &&
                   (!options.flex || memory.bytes(Strategy::dp, dim, p) <= memory.bytes(cut, dim, p));
        });
    if (options.flex)
        walk.take(Strategy::flex, &TableTiers::flex, budget,
                  [&](double dim, double p) { return sooner_than_row(Strategy::flex, dim, p); });
    if (walk.plan().net_bytes <= budget) return walk.plan();
    FlexShardPlan least = plan_of_least_memory(rows, memory, options);
    if (least.net_bytes <= budget) return least;
    const TableTiers total = least.total();
    throw BadInput{concat({"a budget of ", std::to_string(std::llround(budget)),
                           " bytes a rank: no plan takes as little; the least is ",
                           std::to_string(std::llround(std::ceil(least.net_bytes))), ", with ", total.dp.rows,
                           " DP rows", total.dp.rows == 0 ? ", since none saves memory" : "", "; give at least that"})};
}

}  // namespace detail

SHARDWISE_INLINE TableTiers FlexShardPlan::total() const {
    TableTiers all;
    for (const TableTiers& table : tables)
        for (TierRows TableTiers::*tier : {&TableTiers::dp, &TableTiers::flex, &TableTiers::row}) {
            (all.*tier).rows += (table.*tier).rows;
            (all.*tier).lookups += (table.*tier).lookups;
        }
    return all;
}

SHARDWISE_INLINE FlexShardPlan plan_flexshard(const MergedRows& rows, const Scaling& scaling, const RowMemory& memory,
                                              const FlexShardOptions& options) {
    static_cast<void>(checked(scaling));
    if (!options.dp && !options.flex) throw BadInput{"a plan of the tier Row alone: give it DP, Flex or both, too"};
    if (options.budget && !(std::abs(*options.budget) <= 1e18))
        throw BadInput{"the budget is no number of bytes from -10^18 to 10^18"};
    switch (options.goal) {
        case FlexShardGoal::neutral:
            return detail::plan_within(rows, scaling, memory, options, options.budget.value_or(0.0));
        case FlexShardGoal::memory:
            if (options.budget)
                throw BadInput{"a budget has no effect where the goal is the least memory: leave it out"};
            return detail::plan_of_least_memory(rows, memory, options);
        case FlexShardGoal::communication:
            break;
    }
    if (knows_seconds(scaling, options.flex)) {
        FlexShardPlan plan = detail::plan_of_least_seconds(rows, scaling, memory, options);
        if (!options.budget || plan.net_bytes <= *options.budget) return plan;
    } else if (!options.budget) {
        throw BadInput{
            concat({"the goal is the least communication, and what it takes is not known: give a budget, or the "
                    "bandwidths of the global all-to-all and all-reduce",
                    options.flex ? ", of the all-to-all inside hosts and of the all-reduce across them" : ""})};
    }
    return detail::plan_within(rows, scaling, memory, options, *options.budget);
}

SHARDWISE_INLINE double net_bytes(const MergedRows& rows, const FlexShardPlan& plan, const RowMemory& memory) {
    if (plan.tables.size() != rows.tables().size())
        throw BadInput{concat(
            {"a plan of ", plan.tables.size(), " tables, and rows of ", rows.tables().size(), ": give its own"})};
    std::vector<TableTiers> left = plan.tables;
    const TableTiers total = plan.total();
    std::int64_t replicated = total.dp.rows + total.flex.rows;
    double sum = 0.0;
    for (const MergedRows::Run& run : rows.runs()) {
        if (replicated == 0) break;
        std::int64_t here = run.rows;
        for (const auto& [strategy, tier] :
             {std::pair{Strategy::dp, &TableTiers::dp}, std::pair{Strategy::flex, &TableTiers::flex}}) {
            std::int64_t& more = (at(left, run.table).*tier).rows;
            const std::int64_t count = std::min(here, more);
            if (count == 0) continue;
            const double dim = rows.dim(run);
            sum += static_cast<double>(count) *
                   (memory.bytes(strategy, dim, run.p) - memory.bytes(Strategy::row, dim, run.p));
            more -= count;
            here -= count;
            replicated -= count;
        }
    }
    return sum;
}

}  // namespace shardwise::inline SHARDWISE_ABI
