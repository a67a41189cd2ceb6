// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/planning/row_distribution.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include "planning/setting.hpp"

namespace shardwise_test {
namespace {

/// A file of its own, removed at the end.
class File {
  public:
    explicit File(const std::string& text)
        : path_{(std::filesystem::temp_directory_path() /
                 ("shardwise_rows_" + std::to_string(::getpid()) + "_" + std::to_string(count++)))
                    .string()} {
        std::ofstream{path_} << text;
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() { std::remove(path_.c_str()); }
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    static inline int count = 0;
    std::string path_;
};

std::string error_of(const std::string& text) {
    const File file{text};
    const std::string error = bad_input([&] { return sw::read_row_distribution(file.path()); });
    EXPECT_EQ(error.find(file.path()), 0U) << error;
    return error.substr(std::min(error.size(), file.path().size()));
}

TEST(row_distribution, sorts_and_joins_runs) {
    const sw::RowDistribution d{{{0.25, 4}, {0.5, 2}, {0.25, 6}, {0.0, 1}}};
    const std::vector<sw::RowRun> expected{{0.5, 2}, {0.25, 10}, {0.0, 1}};
    EXPECT_TRUE(std::equal(d.runs().begin(), d.runs().end(), expected.begin(), expected.end()));
    EXPECT_EQ(d.rows(), 13);
    EXPECT_EQ(d.lookups(), 3.5);
}

TEST(row_distribution, refuses_what_is_none) {
    const auto of = [](std::vector<sw::RowRun> runs) {
        return bad_input([&] { return sw::RowDistribution{std::move(runs)}; });
    };
    EXPECT_NE(of({{-1e-9, 1}}).find("p is -1e-09: give"), std::string::npos);
    EXPECT_NE(of({{std::numeric_limits<double>::quiet_NaN(), 1}}).find("p is nan"), std::string::npos);
    EXPECT_NE(of({{std::numeric_limits<double>::infinity(), 1}}).find("p is inf"), std::string::npos);
    EXPECT_NE(of({{0.5, 0}}).find("0 rows: give a whole number"), std::string::npos);
    EXPECT_EQ(of({}), "a distribution of rows: it has none; give at least one");
    EXPECT_EQ((sw::RowDistribution{{{0.0, 7}}}.lookups()), 0.0);
    EXPECT_NE(of({{1e300, 1}, {1e308, 1000}}).find("have inf look-ups"), std::string::npos);
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    EXPECT_NE(of({{0.5, most}, {0.25, 1}}).find("more than 9223372036854775807 rows"), std::string::npos);
    EXPECT_EQ((sw::RowDistribution{{{0.5, most - 1}, {0.25, 1}}}.rows()), most);
}

TEST(row_distribution, is_read_from_lines_in_any_order) {
    const File file{"3 0.125\r\n\n \t2\t5e-1  \n  1 2\n4 .125"};
    const sw::RowDistribution d = sw::read_row_distribution(file.path());
    const std::vector<sw::RowRun> expected{{2.0, 1}, {0.5, 2}, {0.125, 7}};
    EXPECT_TRUE(std::equal(d.runs().begin(), d.runs().end(), expected.begin(), expected.end()));
}

TEST(row_distribution, reading_says_how_far_it_is) {
    std::string text;
    for (int i = 0; i < 250'000; ++i)
        text += "1 0.5\n";
    const File file{text};
    std::vector<std::pair<std::int64_t, double>> calls;
    const auto d = sw::read_row_distribution(
        file.path(), [&](std::int64_t lines, double share) { calls.emplace_back(lines, share); });
    EXPECT_EQ(d.rows(), 250'000);
    EXPECT_EQ(calls, (std::vector<std::pair<std::int64_t, double>>{{100'000, 0.4}, {200'000, 0.8}}));
}

TEST(row_distribution, errors_name_file_and_line) {
    EXPECT_EQ(error_of("1 0.5\n2 -0.5\n"),
              ", line 2: p is -0.5: give the look-ups of a row in a sample, a finite number of at least 0");
    EXPECT_NE(error_of("1 0.5\n\n2 nan\n").find(", line 3: p is nan"), std::string::npos);
    EXPECT_NE(error_of("1 inf\n").find(", line 1: p is inf"), std::string::npos);
    EXPECT_NE(error_of("1 1e999\n").find(", line 1: p is '1e999'"), std::string::npos);
    EXPECT_NE(error_of("1 half\n").find(", line 1: p is 'half'"), std::string::npos);
    EXPECT_NE(error_of("0 0.5\n").find(", line 1: 0 rows"), std::string::npos);
    EXPECT_NE(error_of("-3 0.5\n").find(", line 1: -3 rows"), std::string::npos);
    EXPECT_NE(error_of("1.5 0.5\n").find(", line 1: '1.5' rows: give a whole number"), std::string::npos);
    EXPECT_NE(error_of("99999999999999999999 0.5\n").find(", line 1: '99999999999999999999' rows"), std::string::npos);
    EXPECT_NE(error_of("5\n").find(", line 1: give two numbers"), std::string::npos);
    EXPECT_NE(error_of("5 0.5 7\n").find(", line 1: give two numbers"), std::string::npos);
    EXPECT_EQ(error_of("\n\n"), ": has no line of rows and p");
    EXPECT_EQ(bad_input([] { return sw::read_row_distribution("/no/such/file"); }), "/no/such/file: cannot be read");
    EXPECT_EQ(bad_input([] { return sw::read_row_distribution("/tmp"); }), "/tmp: cannot be read");
}

RC_GTEST_PROP(row_distribution, does_not_depend_on_the_order_of_lines, ()) {
    const sw::RowDistribution once = any_distribution();
    std::vector<sw::RowRun> runs;
    for (const sw::RowRun& run : once.runs()) {  // some runs in two parts
        const auto part = *rc::gen::inRange<std::int64_t>(0, run.rows);
        runs.push_back({run.p, run.rows - part});
        if (part != 0) runs.push_back({run.p, part});
    }
    std::shuffle(runs.begin(), runs.end(), std::mt19937_64{*rc::gen::arbitrary<std::uint64_t>()});
    const sw::RowDistribution again{runs};
    RC_ASSERT(std::equal(once.runs().begin(), once.runs().end(), again.runs().begin(), again.runs().end()));
    RC_ASSERT(once.rows() == again.rows());
    RC_ASSERT(once.lookups() == again.lookups());
}

}  // namespace
}  // namespace shardwise_test
