// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "shardwise/planning/library_memory.hpp"

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// Bytes of a row: those it always takes, those of a look-up of a rank, and those once so many samples touched it.
struct RowBytes {
    struct Touched {
        double samples = 0.0;
        double bytes = 0.0;
    };
    double always = 0.0;
    double a_lookup = 0.0;
    std::vector<Touched> touched;

    [[nodiscard]] double of(double lookups, double log_of_missing) const {
        double bytes = always + lookups * a_lookup;
        for (const Touched& by : touched)
            bytes -= by.bytes * std::expm1(by.samples * log_of_missing);
        return bytes;
    }
};

/// Asks the expectation reader about a table whose rows are all alike and in one tier. Beside it is one whose vectors
/// fill the messages, as those of a model's other rows do.
class RowBytesReader {
  public:
    RowBytesReader(const Topology& topology, const LayerNames& names, Strategy strategy, int dim)
        : layer_{draw(topology, names, strategy, dim)} {
        for (const std::int64_t ranks : {1, topology.ranks_per_host, topology.ranks()})
            if (sizes_.empty() || sizes_.back() != ranks) sizes_.push_back(ranks);
    }

    /// Weights and state of a row.
    [[nodiscard]] double row_bytes(int dim) const {
        const RowRule& rule = *layer_.traits().rule;
        return 4.0 * (dim * (1.0 + rule.element_slots()) + rule.row_slots());
    }
    /// \param batch  samples a rank
    [[nodiscard]] RowBytes read(std::int64_t batch) const {
        const double none_touched = needs(1.0, 0.0);
        RowBytes bytes;
        // Two readings in which the table is the largest: grouping has some memory for the largest one alone, and the
        // model takes all look-ups to be of one.
        bytes.a_lookup = (needs(others() + 2.0, 0.0) - needs(others() + 1.0, 0.0)) / (rows * samples);
        // as many workloads as there are unknowns; in the k-th, sizes[k] ranks touch a row once in the mean
        const std::size_t count = sizes_.size();
        std::array<std::array<double, 4>, 3> lines{};
        for (std::size_t k = 0; k < count; ++k) {
            const double log_of_missing = -1.0 / static_cast<double>(samples * sizes_[k]);
            for (std::size_t i = 0; i < count; ++i)
                lines[k][i] = -std::expm1(static_cast<double>(samples * sizes_[i]) * log_of_missing);
            lines[k][count] = (needs(1.0, -std::expm1(log_of_missing)) - none_touched) / rows;
        }
        const std::vector<double> solution = solve(lines, count);
        for (std::size_t k = 0; k < count; ++k)
            bytes.touched.push_back(
                {.samples = static_cast<double>(batch * sizes_[k]), .bytes = std::max(0.0, solution[k])});
        return bytes;
    }

  private:
    static constexpr int rows = 1 << 15;  // so many that whole bytes and elements do not matter
    static constexpr int samples = 64;

    static LayerBlueprint draw(const Topology& topology, LayerNames names, Strategy strategy, int dim) {
        names.shardings = {"dp", "flex", "row"};
        names.tiered = true;
        names.pooling = "none";
        RowPlan plan{.tiers = names.shardings, .tables = {}};
        std::vector<TableConfig> tables(2);
        for (TableConfig& table : tables) {
            table.name = &table == tables.data() ? "rows" : "others";
            table.rows = rows;
            table.dim = dim;
            plan.tables.push_back(all_in_last_tier(table.name, rows, names.shardings.size()));
        }
        if (strategy != Strategy::row)
            std::swap(plan.tables[0].tiers[strategy == Strategy::dp ? 0 : 1], plan.tables[0].tiers[2]);
        return draw_layer(topology, std::move(tables), names, {.rows = &plan});
    }
    /// Look-ups of a row of the other table in the mean: its vectors are more than all copies' sums.
    [[nodiscard]] double others() const { return layer_.topology().hosts; }
    /// Bytes of rank 0's buffers where each row has p and q.
    [[nodiscard]] double needs(double p, double q) const {
        Workload workload{.samples = samples, .weighted = false, .tables = {}, .lengths = {}};
        for (const auto& [name, use] : {std::pair{"rows", RowUse{.p = p, .q = q, .rows = rows}},
                                        std::pair{"others", RowUse{.p = others(), .q = 0.0, .rows = rows}}}) {
            workload.tables.push_back({.table = name, .runs = {use}, .rows = {}});
            workload.lengths.push_back(BagLengths::near(use.p * rows));
        }
        MemoryTally tally;
        static_cast<void>(layer_.expect_cost(workload, &tally, 0));
        return static_cast<double>(tally.needed());
    }
    /// By elimination; the lines are of exponentials of different slopes, and far from dependent.
    static std::vector<double> solve(std::array<std::array<double, 4>, 3> lines, std::size_t count) {
        for (std::size_t k = 0; k < count; ++k)
            for (std::size_t line = 0; line < count; ++line) {
                if (line == k) continue;
                const double factor = lines[line][k] / lines[k][k];
                for (std::size_t i = 0; i <= count; ++i)
                    lines[line][i] -= factor * lines[k][i];
            }
        std::vector<double> solution;
        for (std::size_t k = 0; k < count; ++k)
            solution.push_back(lines[k][count] / lines[k][k]);
        return solution;
    }

    LayerBlueprint layer_;
    std::vector<std::int64_t> sizes_;  // ranks: of a rank, a host, the world, as far as they differ
};

}  // namespace detail

SHARDWISE_INLINE RowMemory library_row_memory(const Scaling& scaling, const LayerNames& names) {
    const auto known = std::make_shared<std::map<std::pair<Strategy, int>, detail::RowBytes>>();
    return {.name = "library",
            .bytes = [scaling = checked(scaling), names, known](Strategy strategy, double dim, double p) {
                const std::pair key{strategy, static_cast<int>(dim)};
                auto found = known->find(key);
                if (found == known->end()) {
                    const Topology& t = scaling.topology;
                    const detail::RowBytesReader reader{t, names, strategy, key.second};
                    detail::RowBytes bytes = reader.read(scaling.batch);
                    const int parts = strategy == Strategy::dp     ? 1
                                      : strategy == Strategy::flex ? t.ranks_per_host
                                                                   : t.ranks();
                    bytes.always =
                        reader.row_bytes(key.second) / parts + 8.0 / 35.0 + (strategy == Strategy::row ? 0.0 : 8.0);
                    found = known->emplace(key, std::move(bytes)).first;
                }
                return found->second.of(p * static_cast<double>(scaling.batch), -p);
            }};
}

}  // namespace shardwise::inline SHARDWISE_ABI
