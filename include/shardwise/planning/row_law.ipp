// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/planning/number_text.hpp"
#include "shardwise/planning/row_law.hpp"

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// Runs of rows 1 .. `rows`, whose p falls, each of rows that differ by less than one part in 10^6.
template <class P>
std::vector<RowRun> runs_of(std::int64_t rows, const P& p) {
    std::vector<RowRun> runs;
    std::int64_t length = 1;
    for (std::int64_t i = 1; i <= rows; i += length) {
        const double first = p(i);
        double last = first;
        for (length = std::min(2 * length, rows - i + 1); length > 1; length /= 2) {
            last = p(i + length - 1);
            if (first - last < 1e-6 * first || first == last) break;
            last = first;
        }
        runs.push_back({.p = (first + last) / 2.0, .rows = length});
    }
    return runs;
}

/// Laws that are given by a shape and by L.
template <class Shape>
std::vector<RowRun> runs_with(double lookups, std::int64_t rows, const Shape& shape) {
    std::vector<RowRun> runs = runs_of(rows, shape);
    double sum = 0.0;
    for (const RowRun& run : runs)
        sum += run.p * static_cast<double>(run.rows);
    for (RowRun& run : runs)
        run.p *= lookups / sum;
    return runs;
}

/// The numbers of a law's text, and the sentence that says what is wrong with them.
struct LawText {
    std::string_view text;
    std::string form;  ///< what it is to look like
    std::vector<double> numbers;

    [[nodiscard]] BadInput wrong(const std::string& what) const {
        return BadInput{concat({"law '", text, "': ", what, "; its form is ", form})};
    }
    /// \throws BadInput when the i-th number is not above 0, or not at least 0
    void check(std::size_t i, const char* name, bool above) const {
        if (!(numbers[i] >= 0.0) || (above && numbers[i] == 0.0) || !std::isfinite(numbers[i]))
            throw wrong(
                concat({name, " is ", written(numbers[i]), ": give a number ", above ? "above 0" : "of at least 0"}));
    }
    [[nodiscard]] std::int64_t rows() const {
        const double rows = numbers[0];
        if (!(rows >= 1.0) || rows > 0x1p62 || rows != std::floor(rows))
            throw wrong(concat({"E is ", written(rows), ": give a whole number of rows, at least 1"}));
        return static_cast<std::int64_t>(rows);
    }
};

SHARDWISE_INLINE std::vector<RowRun> slopes(const LawText& law) {
    const std::int64_t rows = law.rows();
    constexpr std::array<const char*, 9> names{"n1", "n2", "n3", "p1", "s0", "s1", "s2", "s3"};
    for (std::size_t i = 0; i < 8; ++i)
        law.check(i + 1, names[i], i < 4);
    const std::array<double, 3> ends{law.numbers[1], law.numbers[2], law.numbers[3]};
    if (!(ends[0] <= ends[1] && ends[1] <= ends[2])) throw law.wrong("n1, n2 and n3 are to rise");
    const double p1 = law.numbers[4];
    if (p1 > 1.0) throw law.wrong(concat({"p1 is ", written(p1), ": give at most 1"}));
    const std::array<double, 4> slope{law.numbers[5], law.numbers[6], law.numbers[7], law.numbers[8]};
    const double p2 = p1 * std::pow(ends[1] / ends[0], -slope[1]);
    const double p3 = p2 * std::pow(ends[2] / ends[1], -slope[2]);
    return runs_of(rows, [=](std::int64_t row) {
        const auto i = static_cast<double>(row);
        if (i <= ends[0]) return std::min(1.0, p1 * std::pow(i / ends[0], -slope[0]));
        if (i <= ends[1]) return p1 * std::pow(i / ends[0], -slope[1]);
        if (i <= ends[2]) return p2 * std::pow(i / ends[1], -slope[2]);
        return p3 * std::pow(i / ends[2], -slope[3]);
    });
}

SHARDWISE_INLINE std::vector<RowRun> zipf_mandelbrot(const LawText& law) {
    const std::int64_t rows = law.rows();
    law.check(1, "s", false);
    law.check(2, "q", false);
    law.check(3, "c", true);
    return runs_of(rows, [s = law.numbers[1], q = law.numbers[2], c = law.numbers[3]](std::int64_t row) {
        return std::min(1.0, c * std::pow(static_cast<double>(row) + q, -s));
    });
}

SHARDWISE_INLINE std::vector<RowRun> zipf(const LawText& law) {
    const std::int64_t rows = law.rows();
    law.check(1, "s", false);
    law.check(2, "L", true);
    return runs_with(law.numbers[2], rows,
                     [s = law.numbers[1]](std::int64_t row) { return std::pow(static_cast<double>(row), -s); });
}

SHARDWISE_INLINE std::vector<RowRun> decay(const LawText& law, double power) {
    const std::int64_t rows = law.rows();
    law.check(1, "scale", true);
    law.check(2, "L", true);
    return runs_with(law.numbers[2], rows, [power, scale = law.numbers[1]](std::int64_t row) {
        const double x = static_cast<double>(row - 1) / scale;  // e^(-1/scale) is a factor of all rows: none is lost
        return std::exp(power == 1.0 ? -x : -(x * x + 2.0 * x / scale));
    });
}

SHARDWISE_INLINE std::vector<RowRun> exponential(const LawText& law) {
    return decay(law, 1.0);
}
SHARDWISE_INLINE std::vector<RowRun> half_normal(const LawText& law) {
    return decay(law, 2.0);
}

/// A family of laws.
struct LawFamily {
    const char* name;
    const char* numbers;  // their names, parted by colons; those that may be left out in brackets
    std::size_t count;
    std::size_t optional;  // of these, the last ones; each is 1 where it is left out
    std::vector<RowRun> (*runs)(const LawText&);
};

}  // namespace detail

SHARDWISE_INLINE RowDistribution row_law(std::string_view text) {
    constexpr std::array<detail::LawFamily, 5> families{{
        {"slopes", "E:n1:n2:n3:p1:s0:s1:s2:s3", 9, 0, detail::slopes},
        {"zipf_mandelbrot", "E:s:q:c", 4, 0, detail::zipf_mandelbrot},
        {"zipf", "E[:s[:L]]", 3, 2, detail::zipf},
        {"exponential", "E:scale[:L]", 3, 1, detail::exponential},
        {"half_normal", "E:scale[:L]", 3, 1, detail::half_normal},
    }};
    const std::string_view name = text.substr(0, text.find(':'));
    std::string forms;
    for (const detail::LawFamily& family : families) {
        const std::string form = concat({family.name, ":", family.numbers});
        forms += (forms.empty() ? "" : ", ") + form;
        if (name != family.name) continue;
        detail::LawText law{.text = text, .form = form, .numbers = {}};
        for (std::size_t at = name.size(); at < text.size();) {
            const std::size_t end = std::min(text.find(':', at + 1), text.size());
            const std::string_view word = text.substr(at + 1, end - at - 1);
            if (!detail::read_number(word, law.numbers.emplace_back()))
                throw law.wrong(concat({"'", word, "' is no number"}));
            at = end;
        }
        const std::size_t least = family.count - family.optional;
        if (law.numbers.size() > family.count || law.numbers.size() < least)
            throw law.wrong(concat({"it takes ", least, least == family.count ? "" : concat({" to ", family.count}),
                                    " numbers, not ", law.numbers.size()}));
        law.numbers.resize(family.count, 1.0);
        return RowDistribution{family.runs(law)};
    }
    throw BadInput{concat({"law '", text, "': there is none of this name; give one of ", forms})};
}

}  // namespace shardwise::inline SHARDWISE_ABI
