// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "shardwise/core/prefetch.hpp"
#include "shardwise/embedding/steps/update.hpp"
#include "shardwise/optimizer/sum_of_squares.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

struct UpdateTape {
    Folder fold;
    Buffer<float> sums;  // (together, dim)
};

namespace detail {

struct UpdateBody {
    using Tape = UpdateTape;
    using View = shardwise::View<Lanes, UpdateFamily::Tapes, UpdateFamily::Sees>;

    static void run(StepEnv& env, View& view) {
        Lanes& lanes = view.lanes();
        Tape& tape = view.tape<UpdateTape>();
        std::pmr::memory_resource& memory = *view.state<WorkMemory>().resource;
        Store& store = view.state<Store>();
        const TableRules& rules = view.state<TableRules>();
        const Slots slots{store.element_slots(), store.row_slots()};
        tape.fold.prepare(view.state<OrderTraits>(), view.state<HeldShards>().widest, memory);
        for (const RowSet& set : lanes.rows) {
            ShardStore& shard = at(store.shards(), set.slot);
            const TablePlacement& table = at(view.state<Placement>().tables, shard.table);
            const TableRules::Table& own = at(rules.tables, table.table);
            tape.sums.on(memory).resize(static_cast<std::size_t>(together * set.dim));
            if (rules.squares != nullptr) {
                add_squares(set, own.change, view.state<Placement>(), env, tape, *rules.squares);
                continue;
            }
            const Learner learner{own, shard, table.dim, set.changed};
            // Of what RowNorms has changed, the scale is left.
            if (set.changed ? own.change.scale != 1.0F : own.change.of_gradient())
                learn<true>(set, learner, slots, env.topology, tape);
            else
                learn<false>(set, learner, slots, env.topology, tape);
            view.state<TouchedMarks>().mark(set);
        }
    }
    template <class Cost>
    static void memory(const CostEnv&, const Cost& cost, int rank, MemoryTally& tally) {
        tally.need(cost.order->scratch_bytes(cost.widest(rank)));
        tally.need(4 * together * cost.widest(rank));
    }
    template <class Cost>
    static void shape(const CostEnv&, Cost&) {}

  private:
    static constexpr int together = RowRule::most_rows;

    /// The squares of the set's gradients, clipped by value. Rows with copies count once.
    static void add_squares(const RowSet& set, const RowChange& change, const Placement& placement, const StepEnv& env,
                            Tape& tape, ExactSum& squares) {
        if (placement.copy_of(env.rank) != 0) return;
        for (std::int64_t i = 0; i < set.touched(); ++i) {
            tape.fold(set, set.terms(i), env.topology, tape.sums.data());
            if (!set.changed) change.clip(tape.sums.data(), set.dim);
            squares.add_squares({tape.sums.data(), static_cast<std::size_t>(set.dim)});
        }
    }

    /// Places for gradients, in turns: as many as rows are updated together. A row that begins a turn may still need
    /// the sum that the turn before ended with, and so has not taken a place of its own.
    class Sums {
      public:
        Sums(float* places, int dim) : places_{places}, dim_{dim} {}
        float* next() {
            float* const place = places_ + static_cast<std::ptrdiff_t>(next_) * dim_;
            next_ = (next_ + 1) % together;
            return place;
        }

      private:
        float* places_;
        int dim_;
        unsigned next_ = 0;
    };
    /// The memory of a row beside its weights.
    struct Slots {
        int element;
        int row;
        [[gnu::always_inline]] void prefetch_row(const ShardStore& shard, LocalRow of, int dim) const {
            const auto at_row = static_cast<std::int64_t>(of);
            prefetch(shard.weights.data() + at_row * dim, dim);
            if (element > 0) prefetch(shard.element_state.data() + at_row * dim * element, dim * element);
            if (row > 0) prefetch(shard.row_state.data() + at_row * row, 1);  // its first line
        }
    };
    /// Applies the rule to rows of one shard, some together.
    struct Learner {
        const TableRules::Table& own;
        ShardStore& shard;
        int table_dim;
        bool changed;  // but for the scale

        [[nodiscard]] float* weights(LocalRow row) const {
            return shard.weights.data() + static_cast<std::int64_t>(row) * shard.dim;
        }
        void change(LocalRow row, float* gradient) const {
            if (changed)
                own.change.rescale(gradient, shard.dim);
            else
                own.change.apply(gradient, weights(row), shard.dim);
        }

        /// \param fill  makes TouchedRows of the rows from the i-th of `count` on
        template <class Fill>
        void operator()(std::int64_t count, Fill fill) const {
            std::array<TouchedRow, together> touched;
            for (std::int64_t first = 0; first < count; first += together) {
                const auto here = static_cast<std::size_t>(std::min<std::int64_t>(together, count - first));
                fill(first, std::span{touched.data(), here});
                if (own.change.keep != 1.0F)
                    for (std::size_t i = 0; i < here; ++i)
                        own.change.decay(weights(touched[i].row), shard.dim);
                own.rule->apply(own.step, shard, table_dim, {touched.data(), here});
            }
        }
    };
    /// Gives rows their norms, and asks meanwhile for what later rows need: between short loops there is time for that.
    struct Norms {
        bool needed;
        const double* given;  ///< (touched rows), or null
        double rescale;       ///< of those that are given

        /// \param ask  asks for what the i-th of the later rows needs, of so many columns
        template <class Ask>
        void add(std::span<TouchedRow> touched, int dim, Ask ask) {
            if (given != nullptr || !needed) {
                for (std::size_t i = 0; i < touched.size(); ++i) {
                    ask(static_cast<std::int64_t>(i), dim);
                    if (given != nullptr) touched[i].sum_of_squares = *given++ * rescale;
                }
                return;
            }
            switch (dim) {
                case 16:
                    return add_as<16>(touched, dim, ask);
                case 32:
                    return add_as<32>(touched, dim, ask);
                case 64:
                    return add_as<64>(touched, dim, ask);
                case 128:
                    return add_as<128>(touched, dim, ask);
                default:
                    return add_as<0>(touched, dim, ask);
            }
        }

      private:
        /// \tparam Dim  the number of columns; 0: `any_dim`
        template <int Dim, class Ask>
        static void add_as(std::span<TouchedRow> touched, int any_dim, Ask ask) {
            const int dim = Dim > 0 ? Dim : any_dim;
            const float* last = nullptr;  // rows of a bag stand together and share its gradient
            double norm = 0.0;
            for (std::size_t i = 0; i < touched.size(); ++i) {
                ask(static_cast<std::int64_t>(i), dim);
                const float* const gradient = touched[i].gradient;
                if (gradient != last) norm = sum_of_squares(gradient, dim);
                last = gradient;
                touched[i].sum_of_squares = norm;
            }
        }
    };

    /// \tparam Changes  gradients, before the rule has them: each row its own
    template <bool Changes>
    static void learn(const RowSet& set, const Learner& learner, const Slots& slots, const Topology& topology,
                      Tape& tape) {
        const double scale = Changes ? static_cast<double>(learner.own.change.scale) : 1.0;
        Norms norms{
            .needed = learner.own.rule->needs_row_norm(), .given = set.sums_of_squares, .rescale = scale * scale};
        const ShardStore& shard = learner.shard;
        Sums sums{tape.sums.data(), set.dim};
        const std::int64_t ahead = rows_ahead(set.dim, 1);
        const auto ask_for_several = [&](std::int64_t i) {
            if (i < set.several) slots.prefetch_row(shard, RowSet::row(set.keys[set.first[i]]), set.dim);
        };

        const auto ask_for = [&](std::int64_t i, int dim) {
            if (i >= set.singles) return ask_for_several(i - set.singles);
            const std::uint64_t key = set.single[i];
            slots.prefetch_row(shard, RowSet::row(key), dim);
            if (RowSet::number(key) != RowSet::number(set.single[i - 1])) set.prefetch_terms(RowSet::number(key), dim);
        };

        // In the order of samples: rows of a bag stand together, share its gradient and its norm.
        const Contribution* last = nullptr;
        const float* sum = nullptr;
        learner(set.singles, [&](std::int64_t first, std::span<TouchedRow> touched) {
            // What is read already here is asked for here. Weights are 1 or not for all ids of a batch, as a rule.
            const bool reads =
                Changes || set.wide || set.contributions[RowSet::number(set.single[first])].weight != 1.0F;
            for (std::size_t i = 0; i < touched.size(); ++i) {
                const std::int64_t of_row = first + static_cast<std::int64_t>(i);
                if (reads) ask_for(of_row + ahead, set.dim);
                const std::uint64_t key = set.single[of_row];
                const Contribution* const of = &set.contributions[RowSet::number(key)];
                if (Changes || of != last) {
                    last = of;
                    if (!Changes && of->weight == 1.0F && !set.wide) {
                        sum = of->terms<float>();
                    } else {
                        float* const place = sums.next();
                        if (set.wide)
                            shardwise::detail::start_sum<double>(place, *of, set.dim);
                        else
                            shardwise::detail::start_sum<float>(place, *of, set.dim);
                        if constexpr (Changes) learner.change(RowSet::row(key), place);
                        sum = place;
                    }
                }
                touched[i] = {.row = RowSet::row(key), .gradient = sum, .sum_of_squares = 0.0};
            }
            norms.add(touched, set.dim, [&](std::int64_t i, int dim) {
                if (!reads) ask_for(first + i + ahead, dim);
            });
        });
        learner(set.several, [&](std::int64_t first, std::span<TouchedRow> touched) {
            for (std::size_t i = 0; i < touched.size(); ++i) {
                const std::int64_t of = first + static_cast<std::int64_t>(i);
                ask_for_several(of + ahead);
                float* const place = sums.next();
                const RowTerms terms = set.terms(set.singles + of);
                tape.fold(set, terms, topology, place);
                if constexpr (Changes) learner.change(terms.row, place);
                touched[i] = {.row = terms.row, .gradient = place, .sum_of_squares = 0.0};
            }
            norms.add(touched, set.dim, [](std::int64_t, int) {});
        });
    }
};

}  // namespace detail

SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, UpdateFamily) {
    return code_from<EmbeddingDomain, detail::UpdateBody>();
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
