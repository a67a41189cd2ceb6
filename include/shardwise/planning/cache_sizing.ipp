// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include "shardwise/core/at.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/planning/cache_sizing.hpp"
#include "shardwise/planning/number_text.hpp"
#include "shardwise/planning/workloads.hpp"

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

SHARDWISE_INLINE double size_of_row(const std::string& table, int dim) {
    if (dim < 1) throw BadInput{concat({"table '", table, "': a dimension of ", dim, "; give at least 1"})};
    return dim;
}

/// \throws BadInput unless a number is above 0
SHARDWISE_INLINE void check_above_0(double number, const char* what) {
    if (!(number > 0.0) || !std::isfinite(number))
        throw BadInput{concat({what, " is ", written(number), ": give a number above 0"})};
}

SHARDWISE_INLINE void check_table(const CacheTable& table) {
    const auto wrong = [&](const std::string& what) { return BadInput{concat({"table '", table.name, "': ", what})}; };
    if (!(table.size > 0.0) || !std::isfinite(table.size))
        throw wrong(concat({"rows of size ", written(table.size), "; give a number above 0"}));
    double last = INFINITY;
    for (const RowUse& run : table.runs) {
        if (run.rows < 1) throw wrong(concat({"a run of ", run.rows, " rows; give at least 1"}));
        if (!(run.q >= 0.0 && run.q <= 1.0))
            throw wrong(concat({"rows in a share of ", written(run.q), " of the samples; give 0 to 1"}));
        if (!(run.p >= 0.0 && run.p <= last) || !std::isfinite(run.p))
            throw wrong(concat({"rows of ", written(run.p), " look-ups a sample after rows of ", written(last),
                                "; give the rows by falling look-ups, none negative"}));
        last = run.p;
    }
    if (table.cacheable < 0 || table.cacheable > table.rows())
        throw wrong(concat({table.cacheable, " rows may be cached, of ", table.rows()}));
}

}  // namespace detail

SHARDWISE_INLINE std::int64_t CacheTable::rows() const noexcept {
    std::int64_t sum = 0;
    for (const RowUse& run : runs)
        sum += run.rows;
    return sum;
}
SHARDWISE_INLINE double CacheTable::lookups() const noexcept {
    double sum = 0.0;
    for (const RowUse& run : runs)
        sum += run.p * static_cast<double>(run.rows);
    return sum;
}
SHARDWISE_INLINE double CacheTable::unique(double batch) const noexcept {
    double sum = 0.0;
    for (const RowUse& run : runs)
        sum += static_cast<double>(run.rows) * chance_of(run.q, batch);
    return sum;
}

SHARDWISE_INLINE CacheTable cache_table(const TableAccess& table, std::int64_t samples, int dim) {
    TableUse use = use_of(table, samples);
    CacheTable of{.name = table.name,
                  .runs = std::move(use.runs),
                  .size = detail::size_of_row(table.name, dim),
                  .cacheable = std::ssize(use.rows)};
    if (const std::int64_t others = table.rows - of.rows(); others > 0)
        of.runs.push_back({.p = 0.0, .q = 0.0, .rows = others});
    return of;
}

SHARDWISE_INLINE CacheTable cache_table(const std::string& name, const RowDistribution& distribution, int dim) {
    const std::array bags{BagLengths::near(distribution.lookups())};
    CacheTable of{.name = name,
                  .runs = use_of(name, distribution, bags).runs,
                  .size = detail::size_of_row(name, dim),
                  .cacheable = distribution.rows()};
    if (const std::int64_t others = distribution.rows() - of.rows(); others > 0)
        of.runs.push_back({.p = 0.0, .q = 0.0, .rows = others});
    return of;
}

SHARDWISE_INLINE CacheCosts::CacheCosts(std::vector<CacheTable> tables, const CacheSetting& setting)
    : tables_{std::move(tables)}, setting_{setting} {
    if (tables_.empty()) throw BadInput{"a cache for no table: give at least one"};
    detail::check_above_0(setting.memory, "the memory for cached rows and batches");
    detail::check_above_0(setting.activation, "the memory that a sample takes");
    detail::check_above_0(setting.samples, "the number of samples of an epoch");
    if (!(setting.least_batch >= 1.0) || !std::isfinite(setting.least_batch))
        throw BadInput{
            concat({"a least batch of ", detail::written(setting.least_batch), " samples: give at least 1"})};
    const double least = setting.least_batch * setting.activation;
    if (setting.memory < least)
        throw BadInput{concat({"memory of ", detail::written(setting.memory), " is too little: ",
                               setting.least_batch == 1.0
                                   ? std::string{"one sample takes"}
                                   : concat({"a batch of ", detail::written(setting.least_batch), " samples takes"}),
                               " ", detail::written(least), "; give at least that"})};
    struct Source {
        const RowUse* run;
        int table;
        bool cacheable;
        std::int64_t rows;
    };
    std::vector<Source> sources;
    for (std::size_t t = 0; t < tables_.size(); ++t) {
        const CacheTable& table = tables_[t];
        detail::check_table(table);
        lookups_ += table.lookups();
        rows_ += table.cacheable;
        std::int64_t left = table.cacheable;
        for (const RowUse& run : table.runs) {
            const std::int64_t may = std::min(left, run.rows);
            if (may != 0) sources.push_back({&run, static_cast<int>(t), true, may});
            if (may != run.rows) sources.push_back({&run, static_cast<int>(t), false, run.rows - may});
            left -= may;
        }
    }
    const auto rank = [this](const Source& of) {
        return std::tuple{!of.cacheable, -of.run->p / at(tables_, of.table).size};
    };
    std::stable_sort(sources.begin(), sources.end(),
                     [&](const Source& a, const Source& b) { return rank(a) < rank(b); });
    std::int64_t first = 0;
    sizes_before_.push_back(0.0);
    for (const Source& of : sources) {
        const double size = at(tables_, of.table).size;
        runs_.push_back(
            {.log_missing = std::log1p(-of.run->q), .size = size, .first = first, .rows = of.rows, .table = of.table});
        first += of.rows;
        sizes_before_.push_back(sizes_before_.back() + size * static_cast<double>(of.rows));
    }
    std::int64_t above = rows_ + 1;  // the first number of rows that leaves too little
    while (most_ + 1 < above) {
        const std::int64_t middle = most_ + (above - most_) / 2;
        (setting.memory - size_of(middle) >= least ? most_ : above) = middle;
    }
}

SHARDWISE_INLINE std::size_t CacheCosts::run_of(std::int64_t cached) const noexcept {
    const auto behind = std::upper_bound(runs_.begin(), runs_.end(), cached,
                                         [](std::int64_t row, const Run& run) { return row < run.first + run.rows; });
    return static_cast<std::size_t>(behind - runs_.begin());
}
SHARDWISE_INLINE double CacheCosts::size_of(std::int64_t cached) const noexcept {
    const std::size_t at = run_of(cached);
    if (at == runs_.size()) return sizes_before_[at];
    return sizes_before_[at] + runs_[at].size * static_cast<double>(cached - runs_[at].first);
}
SHARDWISE_INLINE void CacheCosts::check(std::int64_t cached, std::int64_t most) const {
    if (cached >= 0 && cached <= most) return;
    if (cached > rows_)
        throw BadInput{concat({cached, " cached rows: there are ", rows_, " that may be cached; give 0 to ", most})};
    throw BadInput{concat({cached, " cached rows: give 0 to ", most, ", which leaves memory for a batch of ",
                           detail::written(setting_.least_batch), " samples"})};
}

SHARDWISE_INLINE double CacheCosts::batch(std::int64_t cached) const {
    check(cached, most_);
    return (setting_.memory - size_of(cached)) / setting_.activation;
}

SHARDWISE_INLINE double CacheCosts::cost(std::int64_t cached) const {
    const double samples = batch(cached);
    double moved = 0.0;
    for (std::size_t at = run_of(cached); at < runs_.size(); ++at) {
        const Run& run = runs_[at];
        const std::int64_t rows = run.first + run.rows - std::max(run.first, cached);
        moved -= run.size * static_cast<double>(rows) * std::expm1(samples * run.log_missing);
    }
    return setting_.samples * (lookups_ + moved / samples);
}

SHARDWISE_INLINE std::vector<std::int64_t> CacheCosts::rows_of_tables(std::int64_t cached) const {
    check(cached, most_);
    std::vector<std::int64_t> rows(tables_.size());
    for (const Run& run : runs_)
        if (run.first < cached) at(rows, run.table) += std::min(run.rows, cached - run.first);
    return rows;
}

SHARDWISE_INLINE CacheCosts::Step CacheCosts::step(std::int64_t cached) const {
    check(cached, most_ - 1);
    const double before = batch(cached);
    const double after = batch(cached + 1);
    Step of;
    double moved = 0.0;
    for (std::size_t at = run_of(cached); at < runs_.size(); ++at) {
        const Run& run = runs_[at];
        const double chance = -std::expm1(before * run.log_missing);
        std::int64_t rows = run.first + run.rows - std::max(run.first, cached);
        if (run.first <= cached) {  // it has the row in question
            of.saved = run.size * chance;
            --rows;
        }
        const double smaller = -std::expm1(after * run.log_missing);
        const double sizes = run.size * static_cast<double>(rows);
        of.lost += sizes * (before * smaller - after * chance) / after;
        moved += sizes * smaller;
    }
    of.sufficient = (before - after) / after * moved;
    return of;
}

SHARDWISE_INLINE CacheSize best_cache(const CacheCosts& costs) {
    std::int64_t low = 0;
    std::int64_t high = costs.most_cached();  // the first number of rows behind which one more does not pay
    std::int64_t evaluations = 0;
    while (low < high) {
        const std::int64_t middle = low + (high - low) / 2;
        ++evaluations;
        if (costs.step(middle).pays())
            low = middle + 1;
        else
            high = middle;
    }
    CacheSize best{.cached = 0, .batch = 0.0, .cost = costs.cost(0), .cost_uncached = 0.0, .evaluations = evaluations};
    best.cost_uncached = best.cost;
    for (const std::int64_t cached : {low, costs.most_cached()})
        if (const double cost = costs.cost(cached); cost < best.cost) {
            best.cached = cached;
            best.cost = cost;
        }
    best.batch = costs.batch(best.cached);
    return best;
}

}  // namespace shardwise::inline SHARDWISE_ABI
