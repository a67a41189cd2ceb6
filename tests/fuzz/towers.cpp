// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// read_towers over any bytes, and tower_of_tables of what it read: BadInput that names the file or the feature, or
/// every table in the one tower that names its features; what is written again is read again.

#include "shardwise/sharding/towers.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "fuzz/kernel_file.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/tower/tower_file.hpp"

namespace {

using fuzz::require;
namespace sw = shardwise;

const std::vector<sw::TableConfig>& tables() {
    static const std::vector<sw::TableConfig> all{{.name = "a", .rows = 1, .dim = 1},
                                                  {.name = "b", .rows = 1, .dim = 1, .features = {"b1", "b2"}},
                                                  {.name = "c", .rows = 1, .dim = 1}};
    return all;
}

/// The same, counted name by name.
std::optional<std::vector<int>> numbers_of(const sw::Towers& towers) {
    std::map<std::string, std::vector<int>> where;
    for (std::size_t t = 0; t < towers.size(); ++t)
        for (const std::string& feature : towers[t])
            where[feature].push_back(static_cast<int>(t));
    std::vector<int> numbers;
    std::size_t known = 0;
    for (const sw::TableConfig& table : tables()) {
        for (const std::string& feature : sw::features_of(table)) {
            const auto found = where.find(feature);
            if (found == where.end() || found->second.size() != 1) return std::nullopt;
            if (feature == sw::features_of(table).front()) numbers.push_back(found->second[0]);
            if (numbers.back() != found->second[0]) return std::nullopt;
            ++known;
        }
    }
    return known == where.size() ? std::optional{numbers} : std::nullopt;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    static fuzz::KernelFile file;
    static fuzz::KernelFile again;
    file.write({reinterpret_cast<const char*>(bytes), size});
    sw::Towers towers;
    try {
        towers = sw::read_towers(file.path());
    } catch (const sw::BadInput& error) {
        require(std::string_view{error.what()}.starts_with(file.path() + ": "),
                "an error without the file:", error.what());
        return 0;
    }
    require(!towers.empty(), "no tower");
    sw::write_towers(again.path(), towers);
    require(sw::read_towers(again.path()) == towers, "other towers once written");
    std::optional<std::vector<int>> numbers;
    try {
        numbers = sw::tower_of_tables(tables(), towers);
    } catch (const sw::BadInput& error) {
        require(std::string_view{error.what()}.find('\'') != std::string_view::npos,
                "an error without the feature:", error.what());
    }
    require(numbers == numbers_of(towers), "other towers of tables");
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
    fuzz::Random random{seed};
    if (!random.one_in(3)) return LLVMFuzzerMutate(data, size, most);
    std::vector<std::string> names{"a", "b1", "b2", "c"};
    if (random.one_in(3)) names.emplace_back(random.one_in(2) ? "d" : "a");
    if (random.one_in(4)) names.erase(names.begin() + static_cast<std::ptrdiff_t>(random.below(names.size())));
    std::vector<std::string> towers(1 + random.below(3));
    for (const std::string& name : names) {
        std::string& tower = towers[random.below(towers.size())];
        tower += (tower.empty() ? "\"" : ",\"") + name + "\"";
    }
    std::string text = "{\"towers\":[";
    for (const std::string& tower : towers)
        text += (text.back() == '[' ? "[" : ",[") + tower + "]";
    text += random.one_in(5) ? "],\"auc\":0.7}" : "]}";
    if (random.one_in(3)) fuzz::mutate(text);
    return fuzz::become(text, data, most);
}
