// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// read_csv_schema and read_csv_history_schema over any bytes: BadInput that names the file, or a schema whose tables
/// and features fit each other, and that is valid.

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "fuzz/kernel_file.hpp"
#include "shardwise/data/csv_schema_file.hpp"

namespace {

using fuzz::require;
namespace sw = shardwise;

/// \returns whether `read` was given a schema; an error names the file
template <class Read>
bool reads(const std::string& path, Read read) {
    try {
        read();
        return true;
    } catch (const sw::BadInput& error) {
        require(std::string_view{error.what()}.starts_with(path), "an error without the file:", error.what());
        return false;
    }
}

void check(const sw::CsvSchema& schema) {
    schema.validate();
    std::set<std::string> names;
    std::vector<std::string> features;
    for (const sw::TableConfig& table : schema.tables(4)) {
        require(names.insert(table.name).second, "a table twice:", table.name);
        require(table.rows > 0, "a table without rows:", table.name);
        features.insert(features.end(), table.features.begin(), table.features.end());
    }
    const std::vector<std::size_t> order = schema.order();
    require(order.size() == schema.categorical.size() && order.size() == features.size(), "another number of features");
    for (std::size_t i = 0; i != order.size(); ++i) {
        const sw::CsvCategory& feature = schema.categorical[order[i]];
        require(features[i] == feature.feature(), "another order of features");
        require(feature.when_missing() != sw::CsvMissing::usual, "a missing value becomes nothing");
        require(feature.missing != sw::CsvMissing::row || feature.missing_row < schema.rows_of(feature), "no such row");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    static fuzz::KernelFile file;
    file.write({reinterpret_cast<const char*>(bytes), size});
    sw::CsvSchema schema;
    if (reads(file.path(), [&] { schema = sw::read_csv_schema(file.path(), 5); })) check(schema);
    sw::CsvHistorySchema history;
    if (reads(file.path(), [&] { history = sw::read_csv_history_schema(file.path()); })) history.validate();
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
    fuzz::Random random{seed};
    if (!random.one_in(3)) return LLVMFuzzerMutate(data, size, most);
    static constexpr std::string_view top[] = {R"("separator":"\t")",   R"("quotes":false)", R"("header":false)",
                                               R"("header":["a","b"])", R"("rows":9)",       R"("seed":4)",
                                               R"("ignore":"others")",  R"("ignore":["b"])", R"("missing_values":"N")"};
    static constexpr std::string_view labels[] = {R"("y")", R"({"column":"y","positive":["1","2"],"negative":"3"})",
                                                  R"({"column":1,"at_least":2.5})", "1"};
    static constexpr std::string_view dense[] = {R"("p")", R"({"column":"p","transform":"log1p","missing":"error"})",
                                                 R"({"column":"t","time":"%H","part":"hour","missing":-1})"};
    static constexpr std::string_view categories[] = {
        R"("a")", "2", R"({"column":"b","table":"a","rows":7,"ids":"row","missing":6})",
        R"({"column":"b","name":"n","split":"|","missing":"empty"})", R"({"column":"t","time":"%Y%%","part":"month"})"};
    static constexpr std::string_view histories[] = {
        R"({"user":"u","item":"i"})", R"({"user":1,"item":2,"time":{"column":"t","form":"%s"},"ids":"hash","rows":3})"};
    std::string text = "{\"label\":" + std::string{random.one_of(labels)} + ",\"categorical\":[";
    for (std::size_t n = random.below(3) + 1; n != 0; --n)
        text += std::string{random.one_of(categories)} + (n == 1 ? "]" : ",");
    if (random.one_in(2)) text += ",\"dense\":[" + std::string{random.one_of(dense)} + "]";
    if (random.one_in(2)) text += ",\"history\":" + std::string{random.one_of(histories)};
    for (std::size_t n = random.below(3); n != 0; --n)
        text += "," + std::string{random.one_of(top)};
    text += "}";
    if (random.one_in(3)) fuzz::mutate(text);
    return fuzz::become(text, data, most);
}
