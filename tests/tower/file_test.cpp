// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "shardwise/tower/tower_file.hpp"

namespace {
namespace sw = shardwise;

class TowerFile : public testing::Test {
  protected:
    TowerFile() : path_{(std::filesystem::temp_directory_path() / "shardwise_towers_test.json").string()} {}
    ~TowerFile() override { std::filesystem::remove(path_); }

    [[nodiscard]] std::string refused(const std::string& text) const {
        std::ofstream{path_} << text;
        try {
            static_cast<void>(sw::read_towers(path_));
        } catch (const sw::BadInput& error) {
            return std::string{error.what()}.substr(path_.size());
        }
        return "";
    }
    std::string path_;
};

TEST_F(TowerFile, reads_back_what_was_written) {
    const sw::Towers towers{{"C1", "C4"}, {}, {"a \"quoted\" one"}};
    sw::write_towers(path_, towers, {{"strategy", "coherent"}});
    EXPECT_EQ(sw::read_towers(path_), towers);
    EXPECT_THROW(sw::write_towers("/no/such/folder/towers.json", towers), sw::BadInput);
}

TEST_F(TowerFile, says_what_is_wrong) {
    EXPECT_EQ(refused("{\"towers\": [[\"C1\""), ": is no JSON; a tower file is {\"towers\": [[\"C1\", \"C4\"], ...]}");
    for (const char* text : {"[]", "{}", "{\"towers\": 3}", "{\"towers\": []}"})
        EXPECT_EQ(refused(text), ": has no list 'towers'; a tower file is {\"towers\": [[\"C1\", \"C4\"], ...]}")
            << text;
    EXPECT_EQ(refused("{\"towers\": [[\"C1\"], \"C2\"]}"), ": tower 1 is \"C2\": give the names of its features");
    EXPECT_EQ(refused("{\"towers\": [[\"C1\", 2]]}"),
              ": tower 0 has 2, which is no name of a feature: give it in quotes");
    std::filesystem::remove(path_);
    try {
        static_cast<void>(sw::read_towers(path_));
        FAIL();
    } catch (const sw::BadInput& error) {
        EXPECT_EQ(error.what(), path_ + ": cannot be read");
    }
}

}  // namespace
