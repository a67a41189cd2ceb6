// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "shardwise/core/error.hpp"
#include "shardwise/planning/merged_rows.hpp"
#include "shardwise/planning/row_distribution.hpp"
#include "shardwise/planning/scaling.hpp"

/// \file
/// The setting of the paper, and small distributions whose costs are exact in double.

namespace shardwise_test {

namespace sw = shardwise;

/// 4 hosts of 8 ranks, 4096 samples a rank, multiplier 6. \param faster  all-reduce over all-to-all; 0: no bandwidths
inline sw::Scaling paper_setting(double faster = 0) {
    sw::Scaling scaling{.topology = {.hosts = 4, .ranks_per_host = 8}, .batch = 4096};
    if (faster > 0) {
        scaling.bandwidths.all_to_all_global = 25e9;
        scaling.bandwidths.all_reduce_global = faster * 25e9;
    }
    return scaling;
}

/// What the call throws, as text. It throws BadInput.
template <class F>
std::string bad_input(const F& call) {
    try {
        static_cast<void>(call());
    } catch (const sw::BadInput& error) {
        return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
}

/// Rows whose p are multiples of 1/8192, about the neutral points: with the paper's setting all sums are exact.
/// \param chunk  so are the means of so many rows, a power of two; the last chunk may be half a one
inline sw::RowDistribution any_distribution(std::int64_t chunk = 1) {
    auto runs = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::pair<int, int>>>(
        rc::gen::pair(rc::gen::inRange(0, 40), rc::gen::inRange(1, 60))));
    runs.emplace_back(*rc::gen::inRange(1, 100), *rc::gen::inRange(1, 20));
    std::vector<sw::RowRun> all;
    for (const auto& [p, rows] : runs)
        all.push_back({.p = p / 8192.0, .rows = rows});
    std::int64_t rows = 0;
    for (const sw::RowRun& run : all)
        rows += run.rows;
    const std::int64_t step = std::max<std::int64_t>(1, chunk / 2);
    if (rows % step != 0) all.push_back({.p = *rc::gen::inRange(0, 40) / 8192.0, .rows = step - rows % step});
    return sw::RowDistribution{std::move(all)};
}

/// p of each row, one by one: the slow way to see a distribution.
inline std::vector<double> rows_of(const sw::RowDistribution& distribution) {
    std::vector<double> all;
    for (const sw::RowRun& run : distribution.runs())
        all.insert(all.end(), static_cast<std::size_t>(run.rows), run.p);
    return all;
}

}  // namespace shardwise_test
