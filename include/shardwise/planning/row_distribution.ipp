// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>

#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/planning/number_text.hpp"
#include "shardwise/planning/row_distribution.hpp"

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// What is wrong with a run; empty when nothing is.
SHARDWISE_INLINE std::string wrong_with(const RowRun& run) {
    if (run.rows < 1) return concat({run.rows, " rows: give a whole number of at least 1"});
    if (!std::isfinite(run.p) || run.p < 0.0)
        return concat(
            {"p is ", written(run.p), ": give the look-ups of a row in a sample, a finite number of at least 0"});
    return {};
}

/// The next word of a line, which it is cut from; empty at the end.
SHARDWISE_INLINE std::string_view cut_word(std::string_view& line) {
    constexpr std::string_view blanks = " \t\r";
    line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
    const std::string_view word = line.substr(0, line.find_first_of(blanks));
    line.remove_prefix(word.size());
    return word;
}

}  // namespace detail

SHARDWISE_INLINE RowDistribution::RowDistribution(std::vector<RowRun> runs) : runs_{std::move(runs)} {
    for (const RowRun& run : runs_)
        if (const std::string wrong = detail::wrong_with(run); !wrong.empty())
            throw BadInput{concat({"a distribution of rows: ", wrong})};
    const auto before = [](const RowRun& a, const RowRun& b) { return a.p > b.p; };
    if (!std::is_sorted(runs_.begin(), runs_.end(), before)) std::sort(runs_.begin(), runs_.end(), before);
    std::size_t last = 0;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
        if (runs_[i].rows > std::numeric_limits<std::int64_t>::max() - rows_)
            throw BadInput{"a distribution of rows: it has more than 9223372036854775807 rows"};
        rows_ += runs_[i].rows;
        if (i == 0) continue;
        if (runs_[i].p == runs_[last].p)
            runs_[last].rows += runs_[i].rows;
        else
            runs_[++last] = runs_[i];
    }
    runs_.resize(runs_.empty() ? 0 : last + 1);
    for (const RowRun& run : runs_)
        lookups_ += run.p * static_cast<double>(run.rows);
    if (runs_.empty()) throw BadInput{"a distribution of rows: it has none; give at least one"};
    if (!std::isfinite(lookups_))
        throw BadInput{concat({"a distribution of rows: its ", rows_, " rows have ", detail::written(lookups_),
                               " look-ups a sample together: give a finite number"})};
}

SHARDWISE_INLINE RowDistribution read_row_distribution(const std::string& path,
                                                       const std::function<void(std::int64_t, double)>& progress) {
    std::ifstream file{path};
    if (!file) throw BadInput{concat({path, ": cannot be read"})};
    std::error_code unknown;
    const std::uintmax_t size = std::filesystem::file_size(path, unknown);
    const double bytes = unknown || size == 0 ? std::numeric_limits<double>::infinity() : static_cast<double>(size);
    double read = 0.0;
    std::vector<RowRun> runs;
    std::string text;
    for (std::int64_t number = 1; std::getline(file, text); ++number) {
        read += static_cast<double>(text.size() + 1);
        if (progress && number % 100'000 == 0) progress(number, read / bytes);
        const auto wrong = [&](const std::string& what) {
            return BadInput{concat({path, ", line ", number, ": ", what})};
        };
        std::string_view line = text;
        const std::string_view rows = detail::cut_word(line);
        if (rows.empty()) continue;
        const std::string_view p = detail::cut_word(line);
        if (p.empty() || !detail::cut_word(line).empty())
            throw wrong("give two numbers: rows, and the look-ups of each in a sample");
        RowRun run;
        if (!detail::read_number(rows, run.rows))
            throw wrong(concat({"'", rows, "' rows: give a whole number of at least 1"}));
        if (!detail::read_number(p, run.p))
            throw wrong(concat({"p is '", p, "': give the look-ups of a row in a sample, such as 1.5e-3"}));
        if (const std::string what = detail::wrong_with(run); !what.empty()) throw wrong(what);
        runs.push_back(run);
    }
    if (file.bad()) throw BadInput{concat({path, ": cannot be read"})};
    if (runs.empty()) throw BadInput{concat({path, ": has no line of rows and p"})};
    try {
        return RowDistribution{std::move(runs)};
    } catch (const BadInput& error) {
        throw BadInput{concat({path, ": ", error.what()})};
    }
}

}  // namespace shardwise::inline SHARDWISE_ABI
