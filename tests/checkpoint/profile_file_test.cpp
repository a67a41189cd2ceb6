// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/checkpoint/profile_file.hpp"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck/gtest.h>

#include "checkpoint/support.hpp"
#include "shardwise/planning/access_profile.hpp"

namespace {

namespace sw = shardwise;
using checkpoint_test::TemporaryFile;

sw::AccessProfile small_profile() {
    return {.samples = 10,
            .tables = {{.name = "C2", .rows = 5, .lookups = 9, .seen = {{1, 6, 5}, {4, 3, 3}}},
                       {.name = "C10", .rows = 100, .lookups = 50, .error = 4, .seen = {{99, 10, 10}}},
                       {.name = "never/looked \"up\"", .rows = 1}}};
}

std::string profile_refusal(const std::string& path) {
    try {
        static_cast<void>(sw::read_profile(path));
    } catch (const sw::BadInput& error) {
        const std::string what = error.what();
        EXPECT_EQ(what.rfind(path + ": ", 0), 0U) << what;
        EXPECT_EQ(what.find('\n'), std::string::npos) << what;
        return what.substr(path.size() + 2);
    }
    return "";
}

TEST(ProfileFile, ReadsBackWhatWasWritten) {
    const TemporaryFile file{"profile"};
    sw::write_profile(file.path(), small_profile());
    EXPECT_EQ(sw::read_profile(file.path()), small_profile());
    sw::write_profile(file.path(), {});
    EXPECT_EQ(sw::read_profile(file.path()), sw::AccessProfile{});
    // rows pass through memory in pieces
    sw::AccessProfile large{.samples = 3, .tables = {{.name = "t", .rows = 1'000'000'000'000}}};
    for (std::int64_t i = 0; i != 200'001; ++i)
        large.tables[0].seen.push_back({4'000'000 * i + i % 7, 3 + i % 5, 1 + i % 3});
    for (const sw::RowAccess& row : large.tables[0].seen)
        large.tables[0].lookups += row.lookups;
    sw::write_profile(file.path(), large);
    EXPECT_EQ(sw::read_profile(file.path()), large);
}

TEST(ProfileFile, AWrongProfileIsNotWritten) {
    const TemporaryFile file{"not_written"};
    sw::AccessProfile wrong = small_profile();
    wrong.tables[0].lookups = 10;
    EXPECT_THROW(sw::write_profile(file.path(), wrong), sw::BadInput);
    EXPECT_FALSE(std::ifstream{file.path()});
    EXPECT_THROW(sw::write_profile("/no/such/folder/p.safetensors", small_profile()), sw::BadInput);
}

TEST(ProfileFile, SaysWhatIsWrong) {
    const TemporaryFile file{"wrong"};
    sw::write_profile(file.path(), small_profile());
    const std::string good = file.read();
    std::uint64_t header = 0;
    std::memcpy(&header, good.data(), 8);
    const std::size_t data = 8 + header;
    // number i of the data, in the order of the tensors: samples, C2: total row lookups samples, C10: ...
    const auto with = [&](std::size_t i, std::int64_t value) {
        std::string bytes = good;
        std::memcpy(bytes.data() + data + 8 * i, &value, 8);
        file.write(bytes);
        return profile_refusal(file.path());
    };
    EXPECT_EQ(with(0, -1), "a profile of -1 samples");
    EXPECT_EQ(with(0, 4), "the profile of table 'C2': row 1 with 6 look-ups in 5 samples of 4");
    EXPECT_EQ(with(1, 4), "the profile of table 'C2': row 4 is none: its rows are 0 to 3");
    EXPECT_EQ(with(2, 10), "the profile of table 'C2': the look-ups of its rows add up to 9, and not to its 10");
    EXPECT_EQ(with(4, 4), "the profile of table 'C2': row 4 stands twice");
    EXPECT_EQ(with(5, 0), "the profile of table 'C2': row 0 stands behind row 1: rows ascend");
    EXPECT_EQ(with(7, 4), "the profile of table 'C2': the look-ups of its rows, up to row 4, are more than all 9");
    EXPECT_EQ(with(8, 7), "the profile of table 'C2': row 1 with 6 look-ups in 7 samples of 10");
    EXPECT_EQ(with(12, 0), "the profile of table 'C10': the look-ups of its rows add up to 10, and not to its 50");
    // a file of another kind, and names that are none
    const auto with_text = [&](const std::string& from, const std::string& to) {
        EXPECT_EQ(from.size(), to.size());
        std::string bytes = good;
        const std::size_t at = bytes.find(from);
        EXPECT_NE(at, std::string::npos) << from;
        bytes.replace(at, from.size(), to);
        file.write(bytes);
        return profile_refusal(file.path());
    };
    EXPECT_EQ(with_text("access profile 1", "access profile 2"),
              "is no access profile: its metadata has no format 'shardwise access profile 1' and tables; "
              "profile_rows --out writes one");
    EXPECT_EQ(with_text(R"("[\"C2\")", R"("{\"C2\")"), "the metadata 'tables' is no JSON list of names");
    EXPECT_EQ(with_text(R"("[\"C2\")", R"("[\"C3\")"), "has no tensor 'tables/C3/total'");
    EXPECT_EQ(with_text(R"("[\"C2\",\"C10\")", R"("[\"C2\", \"C2\")"), "the metadata 'tables' has 'C2' twice");
    EXPECT_EQ(with_text("tables/C2/samples", "tables/C2/semples"), "has no tensor 'tables/C2/samples'");
}

// Whatever bytes change: a profile that is right, or one sentence.
RC_GTEST_PROP(ProfileFile, DamageIsFoundOrHarmless, (std::uint64_t seed)) {
    std::mt19937_64 random{seed};
    const TemporaryFile file{"damaged"};
    sw::write_profile(file.path(), small_profile());
    std::string bytes = file.read();
    switch (random() % 3) {
        case 0:
            bytes.resize(random() % bytes.size());
            break;
        case 1:
            bytes += "more";
            break;
        default:
            bytes[random() % bytes.size()] ^= static_cast<char>(1U << random() % 8);
            break;
    }
    file.write(bytes);
    try {
        sw::validate(sw::read_profile(file.path()));
    } catch (const sw::BadInput& error) {
        RC_ASSERT(std::string{error.what()}.rfind(file.path() + ": ", 0) == 0U);
        RC_ASSERT(std::string{error.what()}.find('\n') == std::string::npos);
    }
}

}  // namespace
