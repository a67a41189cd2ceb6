// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// read_profile over any bytes: BadInput that names the file, or a profile that is what stands in the file's tensors,
/// with rows that ascend and counts that add up.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "fuzz/kernel_file.hpp"
#include "fuzz/safetensors_text.hpp"
#include "shardwise/checkpoint/profile_file.hpp"

namespace {

using fuzz::require;
namespace sw = shardwise;

std::vector<std::int64_t> numbers(sw::SafetensorsReader& file, const std::string& name) {
    const auto found = file.tensors().find(name);
    require(found != file.tensors().end(), "a profile without a tensor:", name);
    std::vector<std::int64_t> all(static_cast<std::size_t>(found->second.elements()));
    file.read(found->second, 0, std::span{all});
    return all;
}

void check_table(sw::SafetensorsReader& file, const sw::TableAccess& table, std::int64_t samples) {
    const std::string prefix = "tables/" + table.name + "/";
    require(numbers(file, prefix + "total") == std::vector{table.rows, table.lookups, table.error}, "other totals");
    std::vector<std::int64_t> columns[3];
    __int128 lookups = 0;
    std::int64_t last = -1;
    for (const sw::RowAccess& row : table.seen) {
        require(row.row > last && row.row < table.rows, "a row that is none, or out of order");
        last = row.row;
        require(row.samples >= 1 && row.samples <= row.lookups && row.samples <= samples, "counts that make no sense");
        lookups += row.lookups;
        columns[0].push_back(row.row);
        columns[1].push_back(row.lookups);
        columns[2].push_back(row.samples);
    }
    require(table.error >= 0 && (table.error == 0 ? lookups == table.lookups : lookups <= table.lookups),
            "counts that do not add up");
    require(columns[0] == numbers(file, prefix + "row") && columns[1] == numbers(file, prefix + "lookups") &&
                columns[2] == numbers(file, prefix + "samples"),
            "other rows");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    static fuzz::KernelFile file;
    file.write({reinterpret_cast<const char*>(bytes), size});
    sw::AccessProfile profile;
    try {
        profile = sw::read_profile(file.path());
    } catch (const sw::BadInput& error) {
        require(std::string_view{error.what()}.starts_with(file.path() + ": "),
                "an error without the file:", error.what());
        return 0;
    }
    sw::SafetensorsReader tensors{file.path()};
    require(profile.samples >= 0 && numbers(tensors, "samples") == std::vector{profile.samples}, "other samples");
    for (const sw::TableAccess& table : profile.tables)
        check_table(tensors, table, profile.samples);
    require(sw::merged(profile, {.samples = 0,
                                 .tables =
                                     [&] {
                                         std::vector<sw::TableAccess> empty;
                                         for (const sw::TableAccess& table : profile.tables)
                                             empty.push_back({.name = table.name, .rows = table.rows});
                                         return empty;
                                     }()}) == profile,
            "another profile once nothing was added");
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
    fuzz::Random random{seed};
    if (!random.one_in(3)) return fuzz::mutate_safetensors(random, data, size, most);
    const std::size_t tables = random.below(3);
    std::vector<std::int64_t> values{20};
    std::string header = R"({"samples":{"dtype":"I64","shape":[],"data_offsets":[0,8]})";
    std::string names;
    const auto declare = [&](const std::string& name, const std::vector<std::int64_t>& more) {
        header += ",\"" + name + R"(":{"dtype":"I64","shape":[)" + std::to_string(more.size()) +
                  R"(],"data_offsets":[)" + std::to_string(8 * values.size()) + "," +
                  std::to_string(8 * (values.size() + more.size())) + "]}";
        values.insert(values.end(), more.begin(), more.end());
    };
    for (std::size_t t = 0; t != tables; ++t) {
        const std::string name(1, static_cast<char>('a' + t));
        names += (names.empty() ? "" : ",") + (R"(\")" + name + R"(\")");
        std::vector<std::int64_t> rows;
        std::vector<std::int64_t> lookups;
        std::vector<std::int64_t> samples;
        std::int64_t sum = 0;
        for (std::int64_t row = 0; row != 9; ++row) {
            if (!random.one_in(3)) continue;
            rows.push_back(row);
            samples.push_back(1 + static_cast<std::int64_t>(random.below(20)));
            lookups.push_back(samples.back() + static_cast<std::int64_t>(random.below(5)));
            sum += lookups.back();
        }
        const std::int64_t error = random.one_in(2) ? 0 : static_cast<std::int64_t>(random.below(4));
        declare("tables/" + name + "/total", {9, sum + (error == 0 ? 0 : 3), error});
        declare("tables/" + name + "/row", rows);
        declare("tables/" + name + "/lookups", lookups);
        declare("tables/" + name + "/samples", samples);
    }
    header += R"(,"__metadata__":{"format":"shardwise access profile 1","tables":"[)" + names + R"(]"}})";
    if (random.one_in(2)) values[random.below(values.size())] = static_cast<std::int64_t>(random.below(24)) - 2;
    const std::string_view raw{reinterpret_cast<const char*>(values.data()), 8 * values.size()};
    return fuzz::become(fuzz::safetensors(header, raw), data, most);
}
