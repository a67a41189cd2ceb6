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
        for (const RowSet& rows : lanes.rows) {
            ShardStore& shard = at(store.shards(), rows.slot);
            const TablePlacement& table = at(view.state<Placement>().tables, shard.table);
            const TableRules::Table& own = at(rules.tables, table.table);
            tape.sums.on(memory).resize(static_cast<std::size_t>(together * rows.dim));
            if (rules.squares != nullptr) {
                add_squares(rows, own.change, view.state<Placement>(), env, tape, *rules.squares);
                continue;
            }
            const RowSet set = tape.fold.begin(rows, env.topology);
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
    static void add_squares(const RowSet& rows, const RowChange& change, const Placement& placement, const StepEnv& env,
                            Tape& tape, ExactSum& squares) {
        if (placement.copy_of(env.rank) != 0) return;
        const RowSet set = tape.fold.begin(rows, env.topology);
        for (std::int64_t i = 0; i < set.touched(); ++i) {
            tape.fold(set, set.terms(i), env.topology, tape.sums.data());
            if (!set.changed) change.clip(tape.sums.data(), set.dim);
            squares.add_squares({tape.sums.data(), static_cast<std::size_t>(set.dim)});
        }
    }

    /// The memory of a row beside its weights.
    struct Slots {
        int element;
        int row;
    };
    /// Asks for what later rows need. A copy of all that it reads, so that what is written meanwhile cannot change it.
    struct Ahead {
        RowSet set;
        Slots slots;
        const float* weights;
        const float* element_state;
        const float* row_state;
        std::int64_t distance = rows_ahead(set.dim, 1);

        Ahead(const RowSet& of, const ShardStore& shard, const Slots& beside)
            : set{of},
              slots{beside},
              weights{shard.weights.data()},
              element_state{shard.element_state.data()},
              row_state{shard.row_state.data()} {}
        /// While the i-th touched row is read; of so many columns.
        [[gnu::always_inline]] void operator()(std::int64_t i, int dim) const {
            i += distance;
            if (i < set.singles) {
                const std::uint64_t key = set.single[i];
                row(RowSet::row(key), dim);
                if (RowSet::number(key) != RowSet::number(set.single[i - 1]))
                    set.prefetch_terms(RowSet::number(key), dim);
            } else if (i - set.singles < set.several) {
                row(RowSet::row(set.keys[set.first[i - set.singles]]), dim);
            }
        }
        /// The same while `count` rows with one key are read, from the first on, before any is: a core waits for as
        /// many lines as it can where it reaches many rows, and few are within its reach where each is squared between.
        void together(std::int64_t first, std::int64_t count) const {
            switch (set.dim) {
                case 32:
                    return together_as<32>(first, count);
                case 64:
                    return together_as<64>(first, count);
                case 128:
                    return together_as<128>(first, count);
                default:
                    return together_as<0>(first, count);
            }
        }

      private:
        /// \tparam Dim  the number of columns; 0: set.dim
        template <int Dim>
        void together_as(std::int64_t first, std::int64_t count) const {
            const int dim = Dim > 0 ? Dim : set.dim;
            const std::int64_t behind = first + distance + count;
            std::int64_t i = first + distance;
            if (set.contributions.even != nullptr && slots.element == 0) {
                const Ahead copy = *this;  // stays in registers
                const std::int64_t end = std::min(behind, set.singles);
                std::uint64_t last = copy.set.contributions.count;  // no number
                for (; i < end; ++i) {
                    const std::uint64_t key = copy.set.single[i];
                    const auto at_row = static_cast<std::int64_t>(RowSet::row(key));
                    prefetch(copy.weights + at_row * dim, dim);
                    if (copy.slots.row > 0) prefetch(copy.row_state + at_row * copy.slots.row, 1);
                    const std::uint64_t number = RowSet::number(key);
                    if (number != last) prefetch(copy.set.contributions.even_terms(number), dim);
                    last = number;
                }
            }
            for (; i < behind; ++i)
                (*this)(i - distance, dim);
        }
        [[gnu::always_inline]] void row(LocalRow of, int dim) const {
            const auto at_row = static_cast<std::int64_t>(of);
            prefetch(weights + at_row * dim, dim);
            if (slots.element > 0) prefetch(element_state + at_row * dim * slots.element, dim * slots.element);
            if (slots.row > 0) prefetch(row_state + at_row * slots.row, 1);  // its first line
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

        /// Rows [first, end) in turns. \param fill  fill(first, touched) makes TouchedRows of the rows from `first` on
        template <class Fill>
        void operator()(std::int64_t first, std::int64_t end, Fill fill) const {
            std::array<TouchedRow, together> touched;
            for (; first < end; first += together) {
                const auto here = static_cast<std::size_t>(std::min<std::int64_t>(together, end - first));
                fill(first, std::span{touched.data(), here});
                if (own.change.keep != 1.0F)
                    for (std::size_t i = 0; i < here; ++i)
                        own.change.decay(weights(touched[i].row), shard.dim);
                own.rule->apply(own.step, shard, table_dim, {touched.data(), here});
            }
        }
    };
    /// Gives rows their norms, and asks meanwhile for what later rows need, where these are of a line: between short
    /// loops there is time for that.
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
        const Ahead ahead{set, learner.shard, slots};
        const auto place = [&](std::size_t i) { return tape.sums.data() + i * static_cast<std::size_t>(set.dim); };

        const auto sum_up = [&](std::int64_t first, std::span<TouchedRow> touched) __attribute__((always_inline)) {
            for (std::size_t i = 0; i < touched.size(); ++i) {
                const std::int64_t of = first + static_cast<std::int64_t>(i);
                ahead(of, set.dim);
                const RowTerms terms = set.terms(of);
                tape.fold(set, terms, topology, place(i));
                if constexpr (Changes) learner.change(terms.row, place(i));
                touched[i] = {.row = terms.row, .gradient = place(i), .sum_of_squares = 0.0};
            }
            norms.add(touched, set.dim, [](std::int64_t, int) {});
        };
        // In the order of samples: rows of a bag stand together. Without weights they share its gradient and its norm.
        learner(0, set.singles, [&](std::int64_t first, std::span<TouchedRow> touched) {
            if (Changes || !point_at_terms(set, first, touched)) return sum_up(first, touched);
            // A row of one line is squared before a core can wait for more.
            if (set.dim <= 16)
                return norms.add(touched, set.dim, [&ahead, first](std::int64_t i, int dim) { ahead(first + i, dim); });
            ahead.together(first, std::ssize(touched));
            if (set.contributions.squares == nullptr) norms.add(touched, set.dim, [](std::int64_t, int) {});
        });
        learner(set.singles, set.touched(), sum_up);
    }

    /// Rows with one term of weight 1 need no sum of their own, and have its norm where that was made. \returns whether
    /// these all are such
    static bool point_at_terms(const RowSet& set, std::int64_t first, std::span<TouchedRow> touched) {
        if (set.wide) return false;
        const std::uint64_t* const keys = set.single + first;
        const Contributions contributions = set.contributions;
        bool ones = true;
        for (std::size_t i = 0; i < touched.size(); ++i) {
            const Contribution of = contributions[RowSet::number(keys[i])];
            ones &= of.weight == 1.0F;
            touched[i] = {.row = RowSet::row(keys[i]), .gradient = of.terms<float>(), .sum_of_squares = 0.0};
        }
        if (const double* const squares = contributions.squares; squares != nullptr)
            for (std::size_t i = 0; i < touched.size(); ++i)
                touched[i].sum_of_squares = squares[RowSet::number(keys[i])];
        return ones;
    }
};

}  // namespace detail

SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, UpdateFamily) {
    return code_from<EmbeddingDomain, detail::UpdateBody>();
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
