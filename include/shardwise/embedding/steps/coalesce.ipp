// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "shardwise/core/at.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/embedding/kernels/distinct_ids.hpp"
#include "shardwise/embedding/kernels/lookup.hpp"
#include "shardwise/embedding/lanes/check_ids.hpp"
#include "shardwise/embedding/lanes/means.hpp"
#include "shardwise/embedding/steps/coalesce.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

/// What the fork leaves to the merge and to their adjoints.
struct CoalesceTape {
    DistinctIds find;
    Buffer<LocalRow> numbers;          // (id by feature): which of its table's distinct ids it is
    Buffer<std::int32_t> narrow;       // (distinct id by table), or
    Buffer<std::int64_t> wide;         // these
    Buffer<std::uint32_t> times;       // (distinct id by table): how many ids it stands for, where that is counted
    Buffer<float> weights;             // (id by feature)
    Buffer<float> rows;                // (distinct id by table, dim)
    std::vector<std::int32_t> counts;  // (table): distinct ids
    std::vector<std::int64_t> first;   // (feature + 1): its first id
};
struct DistinctSumsTape {
    Buffer<float> narrow;              // (distinct id by table, dim), or
    Buffer<double> wide;               // these, and `narrow` of them where they travel as floats
    Buffer<float> divided;             // the gradient of one bag of a mean
    std::vector<std::int64_t> cursor;  // (feature of a table): its next id
};

namespace detail {

/// Ids of the features of a table.
template <class Batch>
auto ids_of_table(const CoalescedTables::Table& table, const Batch& batch) {
    std::decay_t<decltype(batch.values(0))> ids = 0;
    for (int f = table.first; f < table.end; ++f)
        ids += batch.values(f);
    return rounded_up(ids);
}
/// The most distinct ids that all tables together may have.
template <class Batch>
std::int64_t most_distinct(const CoalescedTables& tables, const Batch& batch) {
    std::int64_t most = 0;
    for (const CoalescedTables::Table& table : tables.tables)
        most += std::min(ids_of_table(table, batch), table.rows);
    return most;
}

struct CoalesceBody {
    using Tape = CoalesceTape;
    using View = shardwise::View<Lanes, CoalesceFamily::Tapes, CoalesceFamily::Sees>;

    static void run(StepEnv& env, View& view) {
        BatchView& batch = view.lanes().batch;
        const CoalescedTables& tables = view.state<CoalescedTables>();
        const std::string wrong = first_wrong_request(batch, tables);
        if (!wrong.empty()) {
            env.error.note(FlightError::bad_input, wrong);
            view.lanes().clear_batch();
        }
        CoalesceTape& tape = view.tape<CoalesceTape>();
        std::pmr::memory_resource& memory = *view.state<WorkMemory>().resource;
        find(batch, tables, tape, memory);
        if (tables.counted) count_times(tables, tape, memory);
        keep_weights(batch, tables, tape, memory);
        hand_out(view.branch(0), tables, tape, memory);
        RequestCounts& counts = view.state<RequestCounts>();
        counts.lookups += static_cast<std::int64_t>(tape.numbers.size());
        for (const std::int32_t count : tape.counts)
            counts.distinct += count;
    }
    template <class Cost>
    static void memory(const CostEnv&, const Cost& cost, int rank, MemoryTally& tally) {
        const CoalescedTables& tables = *cost.coalesced;
        const auto& batch = cost.batch(rank);
        std::int64_t ids = 0;
        std::int64_t slots = 0;
        for (const CoalescedTables::Table& table : tables.tables) {
            const std::int64_t here = ids_of_table(table, batch);
            ids += here;
            slots = std::max(slots, DistinctIds::slots(here, table.rows));
        }
        const std::int64_t most = most_distinct(tables, batch);
        tally.need(4 * slots);
        tally.need(4 * ids);
        tally.need(tables.wide ? 0 : 4 * most);
        tally.need(tables.wide ? 8 * most : 0);
        tally.need(tables.counted ? 4 * most : 0);
        tally.need(batch.weighted() ? 4 * ids : 0);
        tally.need(4 * elements(tables, cost.distinct_ids(rank)));
    }
    static void shape(const CostEnv&, EmbeddingCost& cost, std::span<EmbeddingCost* const> plans) {
        EmbeddingCost& plan = *plans[0];
        plan.batches = std::vector<BatchView>(cost.batches.size());
        plan.own.assign(cost.batches.size(), {});
        for (int rank = 0; rank < static_cast<int>(cost.batches.size()); ++rank) {
            EmbeddingCost::OwnBatch& own = at(plan.own, rank);
            if (cost.at_most) {
                at(plan.batches, rank).begin(1, {}, {}, {});
                for (const CoalescedTables::Table& table : cost.coalesced->tables)
                    at(plan.batches, rank)
                        .add_feature(0, std::min(ids_of_table(table, cost.batch(rank)), table.rows), nullptr);
                continue;
            }
            const auto ids = cost.ids_by_table(rank);
            for (const auto& of_table : ids) {
                own.ids.insert(own.ids.end(), of_table.begin(), of_table.end());
                own.lengths.push_back(static_cast<std::int32_t>(of_table.size()));
            }
            BatchView& batch = at(plan.batches, rank);
            batch.begin(own.ids.empty() ? 0 : 1, {}, own.ids, {});
            std::int64_t first = 0;
            for (const std::int32_t& length : own.lengths) {
                batch.add_feature(first, length, &length);
                first += length;
            }
        }
    }
    static void shape(const CostEnv&, EmbeddingExpectation& cost, std::span<EmbeddingExpectation* const> plans) {
        plans[0]->begin_distinct(*cost.workload);
    }

    /// Elements of the rows of so many distinct ids a table.
    template <class Number>
    static std::int64_t elements(const CoalescedTables& tables, const std::vector<Number>& counts) {
        std::decay_t<decltype(counts[0] * std::int64_t{1})> elements = 0;
        for (std::size_t t = 0; t < tables.tables.size(); ++t)
            elements += counts[t] * std::int64_t{tables.tables[t].dim};
        return rounded_up(elements);
    }

  private:
    static void find(const BatchView& batch, const CoalescedTables& tables, CoalesceTape& tape,
                     std::pmr::memory_resource& memory) {
        const auto most = static_cast<std::size_t>(most_distinct(tables, batch));
        tape.first.assign(1, 0);
        for (int f = 0; f < static_cast<int>(tables.features.size()); ++f)
            tape.first.push_back(tape.first.back() + batch.values(f));
        tape.numbers.on(memory).resize(static_cast<std::size_t>(tape.first.back()));
        tape.narrow.on(memory).resize(tables.wide ? 0 : most);
        tape.wide.on(memory).resize(tables.wide ? most : 0);
        tape.counts.clear();
        std::int64_t before = 0;
        for (const CoalescedTables::Table& table : tables.tables) {
            tape.find.on(memory).begin(ids_of_table(table, batch), table.rows);
            for (int f = table.first; f < table.end; ++f)
                batch.with_ids(f, [&](auto values) {
                    LocalRow* const numbers = tape.numbers.data() + at(tape.first, f);
                    if (tables.wide)
                        tape.find.number(values, tape.wide.data() + before, numbers);
                    else
                        tape.find.number(values, tape.narrow.data() + before, numbers);
                });
            tape.counts.push_back(static_cast<std::int32_t>(tape.find.count()));
            before += tape.find.count();
        }
    }
    static void count_times(const CoalescedTables& tables, CoalesceTape& tape, std::pmr::memory_resource& memory) {
        std::uint32_t* times =
            tape.times.on(memory).assign_zero(tables.wide ? tape.wide.size() : tape.narrow.size()).data();
        for (std::size_t t = 0; t < tables.tables.size(); ++t) {
            const std::int64_t end = at(tape.first, tables.tables[t].end);
            for (std::int64_t i = at(tape.first, tables.tables[t].first); i < end; ++i)
                ++times[at(tape.numbers, i)];
            times += tape.counts[t];
        }
    }
    static void keep_weights(const BatchView& batch, const CoalescedTables& tables, CoalesceTape& tape,
                             std::pmr::memory_resource& memory) {
        float* to = tape.weights.on(memory).resize(batch.weighted() ? tape.numbers.size() : 0).data();
        for (int f = 0; batch.weighted() && f < static_cast<int>(tables.features.size()); ++f)
            for (std::int64_t i = batch.first_value(f), end = i + batch.values(f); i < end; ++i)
                *to++ = batch.weight(i);
    }
    static void hand_out(Lanes& inside, const CoalescedTables& tables, CoalesceTape& tape,
                         std::pmr::memory_resource& memory) {
        float* rows = tape.rows.on(memory).resize(static_cast<std::size_t>(elements(tables, tape.counts))).data();
        inside.batch.begin(tape.numbers.empty() ? 0 : 1, tape.narrow.span(), tape.wide.span(), {});
        inside.output.clear();
        inside.places.clear();
        inside.times = tables.counted ? tape.times.data() : nullptr;
        std::int64_t first = 0;
        for (std::size_t t = 0; t < tables.tables.size(); ++t) {
            const std::int32_t& count = tape.counts[t];
            inside.batch.add_feature(first, count, &count);
            inside.output.emplace_back(rows, count, tables.tables[t].dim);
            rows += std::int64_t{count} * tables.tables[t].dim;
            first += count;
        }
    }
};

struct ExpandBody {
    using View = shardwise::View<Lanes, ExpandFamily::Tapes, ExpandFamily::Sees>;

    static void run(StepEnv&, View& view) {
        const Lanes& lanes = view.lanes();
        const CoalescedTables& tables = view.state<CoalescedTables>();
        const CoalesceTape& tape = view.tape<CoalesceTape>();
        const std::vector<MatrixView<float>>& rows = view.branch(0).output;
        for (std::size_t t = 0; t < tables.tables.size(); ++t)
            for (int f = tables.tables[t].first; f < tables.tables[t].end; ++f) {
                const MatrixView<float>& out = at(lanes.output, f);
                const std::int64_t first = at(tape.first, f);
                const bool weighted = at(tables.features, f).pooled && !tape.weights.empty();
                const LookupArguments lookup{.table = rows[t].data(),
                                             .dim = tables.tables[t].dim,
                                             .bags = lanes.batch.samples(),
                                             .ids = lanes.batch.values(f),
                                             .lengths = lanes.batch.lengths(f),
                                             .rows = tape.numbers.data() + first,
                                             .weights = weighted ? tape.weights.data() + first : nullptr,
                                             .out = out.data()};
                if (at(tables.features, f).pooled)
                    pooled_lookup(lookup, out.stride());
                else
                    gather_rows(lookup, out.stride());
                if (at(tables.features, f).mean) divide_by_lengths(lanes.batch.lengths(f), out);
            }
    }
    template <class Cost>
    static void shape(const CostEnv&, Cost&, std::span<Cost* const>) {}
};

struct SumByUniqueBody {
    using Tape = DistinctSumsTape;
    using View = shardwise::View<Lanes, SumByUniqueFamily::Tapes, SumByUniqueFamily::Sees>;

    static void run(StepEnv&, View& view) {
        const CoalescedTables& tables = view.state<CoalescedTables>();
        const CoalesceTape& coalesced = view.tape<CoalesceTape>();
        Tape& tape = view.tape<DistinctSumsTape>();
        std::pmr::memory_resource& memory = *view.state<WorkMemory>().resource;
        const auto elements = static_cast<std::size_t>(CoalesceBody::elements(tables, coalesced.counts));
        const bool wide = view.state<OrderTraits>().wide;
        tape.wide.on(memory).assign_zero(wide ? elements : 0);
        if (wide)
            tape.narrow.on(memory).resize(tables.words == 1 ? elements : 0);
        else
            tape.narrow.on(memory).assign_zero(elements);
        tape.divided.on(memory).resize(static_cast<std::size_t>(widest_mean(tables)));
        Lanes& inside = view.branch(0);
        inside.gradient.clear();
        std::int64_t first = 0;
        for (std::size_t t = 0; t < tables.tables.size(); ++t) {
            const CoalescedTables::Table& table = tables.tables[t];
            const std::int64_t here = std::int64_t{coalesced.counts[t]} * table.dim;
            const Bags bags{view.lanes(), tables, coalesced, table, tape};
            if (wide)
                bags.add_to(tape.wide.data() + first);
            else
                bags.add_to(tape.narrow.data() + first);
            if (wide && tables.words == 1) round(tape.wide.data() + first, tape.narrow.data() + first, here);
            const float* const sums = tables.words == 1 ? tape.narrow.data() + first
                                                        : reinterpret_cast<const float*>(tape.wide.data() + first);
            inside.gradient.emplace_back(sums, coalesced.counts[t], table.dim * tables.words);
            first += here;
        }
    }
    template <class Cost>
    static void memory(const CostEnv&, const Cost& cost, int rank, MemoryTally& tally) {
        const CoalescedTables& tables = *cost.coalesced;
        const std::int64_t elements = CoalesceBody::elements(tables, cost.distinct_ids(rank));
        tally.need(cost.order->wide && tables.words == 2 ? 0 : 4 * elements);
        tally.need(cost.order->wide ? 8 * elements : 0);
        tally.need(4 * widest_mean(tables));
    }
    template <class Cost>
    static void shape(const CostEnv&, Cost&, std::span<Cost* const>) {}

  private:
    static std::int64_t widest_mean(const CoalescedTables& tables) {
        int widest = 0;
        for (const CoalescedTables::Table& table : tables.tables)
            for (int f = table.first; f < table.end; ++f)
                if (at(tables.features, f).mean) widest = std::max(widest, table.dim);
        return widest;
    }
    static void round(const double* __restrict from, float* __restrict to, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i)
            to[i] = static_cast<float>(from[i]);
    }

    /// The bags of all features of one table, and their gradients.
    struct Bags {
        const Lanes& lanes;
        const CoalescedTables& tables;
        const CoalesceTape& coalesced;
        const CoalescedTables::Table& table;
        Tape& tape;

        /// Adds the gradient of each bag to the sums of its ids' rows, which are zeros before. Tiny products may leave
        /// -0.0, which nobody sees: whatever sums these sums begins at +0.0.
        template <class Value>
        void add_to(Value* sums) const {
            const bool weighted = !coalesced.weights.empty();
            tape.cursor.assign(static_cast<std::size_t>(table.end - table.first), 0);
            for (std::int64_t sample = 0; sample < lanes.batch.samples(); ++sample)
                for (int f = table.first; f < table.end; ++f) {
                    const std::int64_t length = lanes.batch.length(f, sample);
                    if (weighted && at(tables.features, f).pooled)
                        add_bag<true>(f, sample, length, sums);
                    else
                        add_bag<false>(f, sample, length, sums);
                }
        }

      private:
        template <bool Weighted, class Value>
        void add_bag(int f, std::int64_t sample, std::int64_t length, Value* sums) const {
            std::int64_t& id = at(tape.cursor, f - table.first);
            const CoalescedTables::Feature& feature = at(tables.features, f);
            const MatrixView<const float>& gradient = at(lanes.gradient, f);
            const std::int64_t first = at(coalesced.first, f);
            const float* from = feature.pooled ? gradient.row(sample) : nullptr;
            if (feature.mean && length > 1) {
                float* to = tape.divided.data();
                from = divided_by_lengths(lanes.batch.lengths(f) + sample, {from, 1, table.dim}, to).data();
            }
            for (const std::int64_t end = id + length; id < end; ++id) {
                const std::int64_t row = coalesced.numbers[static_cast<std::size_t>(first + id)];
                const float* __restrict term = feature.pooled ? from : gradient.row(id);
                Value* __restrict to = sums + row * table.dim;
                const auto weight =
                    static_cast<Value>(Weighted ? coalesced.weights[static_cast<std::size_t>(first + id)] : 1.0F);
                for (int d = 0; d < table.dim; ++d)
                    to[d] = Weighted ? std::fma(weight, static_cast<Value>(term[d]), to[d])
                                     : to[d] + static_cast<Value>(term[d]);
            }
        }
    };
};

struct EndCoalescedBody {
    using View = shardwise::View<Lanes, boost::mp11::mp_list<>>;
    static void run(StepEnv&, View&) {}
    template <class Cost>
    static void shape(const CostEnv&, Cost&, std::span<Cost* const>) {}
};

}  // namespace detail

SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, CoalesceFamily) {
    return code_from<EmbeddingDomain, detail::CoalesceBody>();
}
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, ExpandFamily) {
    return code_from<EmbeddingDomain, detail::ExpandBody>();
}
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, SumByUniqueFamily) {
    return code_from<EmbeddingDomain, detail::SumByUniqueBody>();
}
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, EndCoalescedFamily) {
    return code_from<EmbeddingDomain, detail::EndCoalescedBody>();
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
