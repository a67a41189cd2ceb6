// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <boost/mp11.hpp>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/prefetch.hpp"
#include "shardwise/embedding/cost.hpp"
#include "shardwise/embedding/fold.hpp"
#include "shardwise/embedding/lanes.hpp"
#include "shardwise/optimizer/optimizer.hpp"
#include "shardwise/optimizer/sum_of_squares.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// The end of every backward plan: one fused pass over the touched rows, and the norms that row-wise rules need of rows
/// whose columns are split.

namespace shardwise::inline SHARDWISE_ABI {

/// Folds the gradient of every touched row and applies the rule to it, row by row. Local. Reads and writes each touched
/// row and its state once, and reads each contribution once.
template <SparseOptimizer Rule, class Order>
struct Update {
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<Update>;
    static constexpr bool reads_state = true;
    static std::string name() { return std::string{"Update<"} + Rule::name + ", " + Order::name + ">"; }

    struct Tape {
        FoldScratch<Order> scratch;
        Buffer<float> sums;  // (together, dim)
    };

    template <class V>
    static void run(StepEnv& env, V& view) {
        Lanes& lanes = view.lanes();
        Tape& tape = view.template tape<Update>();
        const Rule rule = *static_cast<const Rule*>(lanes.rule);  // copies: floats that are written cannot change these
        const UpdateStep now = *lanes.step;
        tape.scratch.prepare(lanes);
        for (const RowSet& set : lanes.rows) {
            ShardStore& shard = lanes.store->shards()[static_cast<std::size_t>(set.slot)];
            const int table_dim = lanes.placement->tables[static_cast<std::size_t>(shard.table)].dim;
            Sums sums{tape.sums.on(*lanes.memory).resize(static_cast<std::size_t>(together * set.dim)).data(), set.dim};
            const double* norms = set.sums_of_squares;
            const std::int64_t ahead = rows_ahead(set.dim, 1);

            // In the order of samples: rows of a bag stand together, share its gradient and its norm.
            const Contribution* last = nullptr;
            const float* sum = nullptr;
            double norm = 0.0;
            learn(rule, now, shard, table_dim, set.singles, [&](std::int64_t i) {
                if (i + ahead < set.singles) {
                    const std::uint64_t key = set.single[i + ahead];
                    prefetch_row(shard, RowSet::row(key));
                    if (RowSet::number(key) != RowSet::number(set.single[i + ahead - 1]))
                        prefetch(set.contributions[RowSet::number(key)].terms<float>(), set.dim);
                }
                const Contribution* const of = &set.contributions[RowSet::number(set.single[i])];
                if (of != last) {
                    last = of;
                    if (of->weight == 1.0F) {
                        sum = of->terms<float>();
                    } else {
                        float* const place = sums.next();
                        detail::start_sum<float>(place, *of, set.dim);
                        sum = place;
                    }
                    if (norms == nullptr) norm = norm_of(sum, set.dim, norms);
                }
                if (norms != nullptr) norm = *norms++;
                return Touched{.row = RowSet::row(set.single[i]), .gradient = sum, .norm = norm};
            });
            learn(rule, now, shard, table_dim, set.several, [&](std::int64_t i) {
                if (i + ahead < set.several) prefetch_row(shard, RowSet::row(set.keys[set.first[i + ahead]]));
                float* const place = sums.next();
                const RowTerms terms = set.terms(set.singles + i);
                fold(set, terms, env.topology, tape.scratch, place);
                return Touched{.row = terms.row, .gradient = place, .norm = norm_of(place, set.dim, norms)};
            });
        }
    }
    static void memory(const EmbeddingCost& cost, int rank, MemoryTally& tally) {
        tally.need(FoldScratch<Order>::bytes(cost.widest(rank)));
        tally.need(4 * together * cost.widest(rank));
    }
    static void shape(EmbeddingCost&) {}

  private:
    static constexpr int together = 32;  // rows; the best of 1 to 32 where it was measured

    /// Places for gradients, in turns: rows of one turn that begin with the sum of the turn before need one fewer.
    class Sums {
      public:
        Sums(float* places, int dim) : places_{places}, dim_{dim} {}
        float* next() {
            float* const place = places_ + next_ * dim_;
            next_ = (next_ + 1) % together;
            return place;
        }

      private:
        float* places_;
        int dim_;
        int next_ = 0;
    };
    struct Touched {
        LocalRow row;
        const float* gradient;  ///< a sum, or the one term of it: -0.0 there is still +0.0 in the sum
        double norm;
    };

    /// Applies the rule to `count` rows. A few at a time go through each stage together, so that the core works on one
    /// while it waits for another. \param next  gives the i-th
    template <class Next>
    static void learn(const Rule rule, const UpdateStep step, ShardStore& shard, int table_dim, std::int64_t count,
                      Next next) {
        std::array<Touched, together> touched;
        std::array<typename Rule::Row, together> shared;
        for (std::int64_t first = 0; first < count; first += together) {
            const auto here = static_cast<std::size_t>(std::min<std::int64_t>(together, count - first));
            for (std::size_t i = 0; i < here; ++i)
                touched[i] = next(first + static_cast<std::int64_t>(i));
            for (std::size_t i = 0; i < here; ++i)
                shared[i] =
                    rule.row(step, shard.row_state.data() + static_cast<std::int64_t>(touched[i].row) * Rule::row_slots,
                             touched[i].norm, table_dim);
            for (std::size_t i = 0; i < here; ++i)
                apply(rule, shared[i], shard, touched[i].row, touched[i].gradient);
        }
    }
    /// The sum of squares of a whole row's gradient, for rules that need it.
    static double norm_of(const float* gradient, int dim, const double*& norms) {
        if constexpr (Rule::needs_row_norm) {
            return norms != nullptr ? *norms++ : sum_of_squares(gradient, dim);
        } else {
            return 0.0;
        }
    }
    [[gnu::always_inline]] static void prefetch_row(const ShardStore& shard, LocalRow of) {
        const auto row = static_cast<std::int64_t>(of);
        prefetch(shard.weights.data() + row * shard.dim, shard.dim);
        if constexpr (Rule::element_slots > 0)
            prefetch(shard.element_state.data() + row * shard.dim * Rule::element_slots,
                     shard.dim * Rule::element_slots);
        if constexpr (Rule::row_slots > 0) prefetch(shard.row_state.data() + row * Rule::row_slots, Rule::row_slots);
    }
    static void apply(const Rule& rule, const typename Rule::Row& shared, ShardStore& shard, LocalRow of,
                      const float* __restrict gradient) {
        const auto row = static_cast<std::int64_t>(of);
        const int dim = shard.dim;
        float* __restrict weights = shard.weights.data() + row * dim;
        float* __restrict state = shard.element_state.data() + row * dim * Rule::element_slots;
        apply_elements(rule, shared, weights, gradient, state, dim, std::make_index_sequence<Rule::element_slots>{});
    }
    template <std::size_t... Slot>
    static void apply_elements(const Rule& rule, const typename Rule::Row& shared, float* __restrict weights,
                               const float* __restrict gradient, [[maybe_unused]] float* __restrict state, int dim,
                               std::index_sequence<Slot...>) {
        detail::for_columns(dim, [&](int first, auto count) {
            for (int d = first; d < first + count; ++d)
                rule.element(shared, weights[d], 0.0F + gradient[d], state[static_cast<int>(Slot) * dim + d]...);
        });
    }
};

/// The norms of whole rows where columns are split: each owner of a row's columns sends the others the sum of squares
/// of its own, in double, and adds all of them in the order of the shards. One message a peer, 8 bytes a touched row.
/// \tparam G  in which a table's shards are: World or OneTower
template <class Order, Group G>
struct RowNorms {
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<RowNorms>;
    using Crosses = G;
    static constexpr bool reads_state = false;
    static std::string name() { return "RowNorms<" + G::name() + ">"; }

    struct Set {
        Buffer<float> sums;     // (row, dim)
        Buffer<double> mine;    // (row)
        Buffer<double> totals;  // (row)
        Buffer<Contribution> folded;
        Buffer<std::uint64_t> keys;
        std::vector<const double*> parts;  // (shard)
    };
    struct Tape {
        FoldScratch<Order> scratch;
        std::vector<Set> sets;
    };

    template <class V>
    static void begin(StepEnv& env, V& view) {
        Lanes& lanes = view.lanes();
        Tape& tape = view.template tape<RowNorms>();
        tape.scratch.prepare(lanes);
        tape.sets.resize(lanes.rows.size());
        for (std::size_t k = 0; k < lanes.rows.size(); ++k) {
            RowSet& rows = lanes.rows[k];
            Set& set = tape.sets[k];
            const auto count = static_cast<std::size_t>(rows.touched());
            set.sums.on(*lanes.memory).resize(count * static_cast<std::size_t>(rows.dim));
            set.mine.on(*lanes.memory).resize(count);
            set.totals.on(*lanes.memory).resize(count);
            set.folded.on(*lanes.memory).resize(count);
            set.keys.on(*lanes.memory).resize(count);
            for (std::size_t i = 0; i < count; ++i) {
                const RowTerms terms = rows.terms(static_cast<std::int64_t>(i));
                float* sum = set.sums.data() + i * static_cast<std::size_t>(rows.dim);
                fold(rows, terms, env.topology, tape.scratch, sum);
                set.mine[i] = sum_of_squares(sum, rows.dim);
                set.folded[i] = {.gradient = sum, .weight = 1.0F, .source = 0};
                set.keys[i] = static_cast<std::uint64_t>(terms.row) << 32U | i;
            }
            rows = {.slot = rows.slot,
                    .dim = rows.dim,
                    .contributions = set.folded.data(),
                    .singles = static_cast<std::int64_t>(count),
                    .single = set.keys.data()};
            const ShardStore& shard = lanes.store->shards()[k];
            set.parts.assign(table_of(lanes, shard.table).shards.size(), nullptr);
            set.parts[static_cast<std::size_t>(shard.shard)] = set.mine.data();
        }
    }
    template <class V>
    static PartSize size(StepEnv&, V& view, int peer) {
        PartSize part;
        for_shared(view.lanes(), peer, [&](std::size_t k) { part.payload += 8 * view.lanes().rows[k].singles; });
        return part;
    }
    template <class V>
    static void pack(StepEnv&, V& view, int peer, ByteWriter& to) {
        Tape& tape = view.template tape<RowNorms>();
        for_shared(view.lanes(), peer,
                   [&](std::size_t k) { to.put(tape.sets[k].mine.data(), view.lanes().rows[k].singles); });
    }
    template <class V>
    static std::int64_t expected(StepEnv&, V& view, int peer) {
        std::int64_t bytes = 0;
        for_shared(view.lanes(), peer, [&](std::size_t k) { bytes += 8 * view.lanes().rows[k].singles; });
        return bytes;
    }
    template <class V>
    static void unpack(StepEnv&, V& view, int peer, ByteReader& from) {
        Tape& tape = view.template tape<RowNorms>();
        for_shared(view.lanes(), peer, [&](std::size_t k) {
            const auto& shards = table_of(view.lanes(), view.lanes().store->shards()[k].table).shards;
            for (std::size_t s = 0; s < shards.size(); ++s)
                if (shards[s].owner == peer) tape.sets[k].parts[s] = from.view<double>(view.lanes().rows[k].singles);
        });
    }
    template <class V>
    static void end(StepEnv&, V& view) {
        Tape& tape = view.template tape<RowNorms>();
        for (std::size_t k = 0; k < tape.sets.size(); ++k) {
            Set& set = tape.sets[k];
            for (std::size_t i = 0; i < set.totals.size(); ++i) {
                double total = 0.0;
                for (const double* part : set.parts)
                    total += part[i];
                set.totals[i] = total;
            }
            view.lanes().rows[k].sums_of_squares = set.totals.data();
        }
    }
    static void memory(const EmbeddingCost& cost, int rank, MemoryTally& tally) {
        cost.for_shards(rank, [&](std::size_t key, int, const ShardPlacement& shard) {
            const int dim = shard.columns.count;
            const auto count = static_cast<std::int64_t>(cost.touched[static_cast<std::size_t>(rank)][key].size());
            tally.need(4 * count * dim);
            for (int i = 0; i < 3; ++i)
                tally.need(8 * count);
            tally.need(count * static_cast<std::int64_t>(sizeof(Contribution)));
        });
        tally.need(FoldScratch<Order>::bytes(cost.widest(rank)));
    }
    static void shape(EmbeddingCost& cost, TrafficMatrix& flush) {
        const Placement& placement = *cost.placement;
        int last = -1;
        for (const FeaturePlacement& feature : placement.features) {
            if (feature.table == last) continue;
            last = feature.table;
            const auto& shards = placement.tables[static_cast<std::size_t>(feature.table)].shards;
            for (std::size_t a = 0; a < shards.size(); ++a)
                for (std::size_t b = 0; b < shards.size(); ++b)
                    if (shards[a].owner != shards[b].owner)
                        flush.at(shards[a].owner, shards[b].owner).payload +=
                            8 *
                            static_cast<std::int64_t>(cost.touched[static_cast<std::size_t>(shards[a].owner)]
                                                                  [static_cast<std::size_t>(feature.first_block) + a]
                                                                      .size());
        }
    }

  private:
    static const TablePlacement& table_of(const Lanes& lanes, int table) {
        return lanes.placement->tables[static_cast<std::size_t>(table)];
    }
    /// Calls use(k) for each of my sets whose table has a shard on `peer` too (a rank has one shard of a table at
    /// most).
    template <class Use>
    static void for_shared(const Lanes& lanes, int peer, Use use) {
        for (std::size_t k = 0; k < lanes.rows.size(); ++k)
            for (const ShardPlacement& shard : table_of(lanes, lanes.store->shards()[k].table).shards)
                if (shard.owner == peer) use(k);
    }
};

/// No exchange of norms: the rows are whole, or the rule needs none.
struct NoRowNorms {};

/// The parameters that the lookup reads and the update writes. Forward it does nothing; its adjoint is the update.
template <SparseOptimizer Rule, class Order, class Norms>
struct Parameters {
    template <class Form>
    using Out = Form;
    using Adjoint = std::conditional_t<std::is_same_v<Norms, NoRowNorms>, Plan<Update<Rule, Order>>,
                                       Plan<Norms, Update<Rule, Order>>>;
    using Uses = boost::mp11::mp_list<>;
    static constexpr bool reads_state = false;
    static std::string name() { return std::string{"Parameters<"} + Rule::name + ">"; }

    template <class V>
    static void run(StepEnv&, V&) {}
    static void shape(EmbeddingCost&) {}
};

}  // namespace shardwise::inline SHARDWISE_ABI
