// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "shardwise/embedding/lanes/expected_rows.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

SHARDWISE_INLINE ExpectedRows::ExpectedRows(const TableUse& use, const Where& where, std::vector<Touches> asked)
    : copies_{static_cast<std::size_t>(where.copies)}, asked_{std::move(asked)} {
    std::sort(asked_.begin(), asked_.end());
    asked_.erase(std::unique(asked_.begin(), asked_.end()), asked_.end());
    cells_.resize(static_cast<std::size_t>(where.shards) * copies_);
    touched_.resize(cells_.size() * asked_.size());
    read(use, where);
}

SHARDWISE_INLINE void ExpectedRows::read(const TableUse& use, const Where& where) {
    constexpr std::size_t many = 256;  // rows that are placed together
    const std::size_t numbers = asked_.size();
    std::vector<std::int64_t> rows(many);
    std::vector<std::int32_t> shards(many, 0);
    std::vector<LocalRow> locals(many);
    std::vector<double> p(many);
    std::vector<double> touched(many * numbers);  // (row, number of what is asked)
    std::size_t waiting = 0;
    const auto place = [&] {
        where.map->locate(std::span<const std::int64_t>{rows.data(), waiting},
                          where.shards == 1 ? nullptr : shards.data(), locals.data());
        for (Touched& of : touched_)
            of.even = of.even || of.rows.remainders.are_even();
        for (std::size_t i = 0; i < waiting; ++i) {
            const std::size_t cell = static_cast<std::size_t>(shards[i]) * copies_ + locals[i] % copies_;
            cells_[cell].lookups += p[i];
            cells_[cell].used += p[i] > 0.0 ? 1 : 0;
            for (std::size_t n = 0; n < numbers; ++n) {
                const double chance = touched[i * numbers + n];
                if (chance == 0.0) continue;
                Touched& of = touched_[cell * numbers + n];
                of.rows.mean += chance;
                if (!of.even) of.rows.remainders.add(chance);
            }
        }
        waiting = 0;
    };
    std::vector<double> chances(numbers);
    UsedRows used{use};
    for (const RowUse& run : use.runs) {
        if (run.p == 0.0) {
            used.skip(run.rows);
            continue;
        }
        lookups_ += run.p * static_cast<double>(run.rows);
        used_ += run.rows;
        const double log_of_missing = std::log1p(-run.q);
        for (std::size_t n = 0; n < numbers; ++n) {
            const auto samples = static_cast<double>(asked_[n].samples);
            const double once = samples == 0 ? 0.0 : -std::expm1(samples * log_of_missing);
            chances[n] = asked_[n].sets == 1 ? once : std::pow(once, asked_[n].sets);
        }
        for (std::int64_t i = 0; i < run.rows; ++i) {
            const std::int64_t row = used.next();
            if (where.tiers != nullptr && where.tiers->tier(row) != where.tier) continue;
            rows[waiting] = row;
            p[waiting] = run.p;
            std::copy(chances.begin(), chances.end(), touched.begin() + static_cast<std::ptrdiff_t>(waiting * numbers));
            if (++waiting == many) place();
        }
    }
    place();
}

/// Of rows that are all there are, exactly 1.
SHARDWISE_INLINE double ExpectedRows::share(std::size_t first_cell, std::size_t count) const {
    double lookups = 0.0;
    std::int64_t used = 0;
    for (std::size_t cell = first_cell; cell < first_cell + count; ++cell) {
        lookups += cells_[cell].lookups;
        used += cells_[cell].used;
    }
    if (used == 0) return 0.0;
    return used == used_ ? 1.0 : std::min(1.0, lookups / lookups_);
}
SHARDWISE_INLINE double ExpectedRows::share(int shard) const {
    return share(static_cast<std::size_t>(shard) * copies_, copies_);
}
SHARDWISE_INLINE double ExpectedRows::share() const {
    return share(std::size_t{0}, cells_.size());
}

SHARDWISE_INLINE std::size_t ExpectedRows::number_of(const Touches& by) const {
    const auto found = std::lower_bound(asked_.begin(), asked_.end(), by);
    SHARDWISE_ASSERT(found != asked_.end() && *found == by);
    return static_cast<std::size_t>(found - asked_.begin());
}

SHARDWISE_INLINE ExpectedCount ExpectedRows::touched(int shard, const TouchedBy& by) const {
    const std::size_t number = number_of({.samples = by.samples});
    ExpectedCount rows;
    for (std::size_t residue = 0; residue < copies_; ++residue) {
        if (by.residues[residue] == 0) continue;
        rows += touched_[(static_cast<std::size_t>(shard) * copies_ + residue) * asked_.size() + number].rows;
    }
    return rows;
}

SHARDWISE_INLINE ExpectedCount ExpectedRows::touched(int shard, const Touches& by) const {
    const std::size_t number = number_of(by);
    ExpectedCount rows;
    for (std::size_t residue = 0; residue < copies_; ++residue)
        rows += touched_[(static_cast<std::size_t>(shard) * copies_ + residue) * asked_.size() + number].rows;
    return rows;
}

SHARDWISE_INLINE double ExpectedRows::touched(std::int64_t samples) const {
    const std::size_t number = number_of({.samples = samples});
    double rows = 0.0;
    for (std::size_t cell = 0; cell < cells_.size(); ++cell)
        rows += touched_[cell * asked_.size() + number].rows.mean;
    return rows;
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
