// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <xxhash.h>

#include "data/support.hpp"
#include "shardwise/data/csv_histories.hpp"
#include "shardwise/data/csv_reader.hpp"
#include "shardwise/data/loader.hpp"

namespace shardwise_test {
namespace {

namespace sw = shardwise;
using sw::CsvFields;
using sw::CsvFormat;
using sw::CsvIds;
using sw::CsvMissing;
using sw::CsvReader;
using sw::CsvSchema;
using sw::TimePart;

using Table = std::vector<std::vector<std::string>>;

/// All fields of files.
Table fields_of(const std::vector<std::string>& files, const CsvFormat& format, int columns,
                std::size_t block = 1 << 16) {
    std::vector<sw::CsvColumn> wanted;
    for (int c = 1; c <= columns; ++c)
        wanted.push_back({.number = c});
    CsvFields fields{files, format, wanted, block};
    Table table;
    while (fields.next()) {
        auto& record = table.emplace_back();
        for (std::size_t c = 0; c != wanted.size(); ++c)
            record.emplace_back(fields[c]);
    }
    return table;
}

constexpr auto no_header = [](char separator = ',', bool quotes = true) {
    return CsvFormat{.separator = separator, .quotes = quotes, .header = false};
};

/// Writes a table with quotes where they have to be, and elsewhere by chance.
std::string written(const Table& table, char separator, std::mt19937_64& random) {
    const std::string special{'"', '\n', '\r', separator};
    std::string text = random() % 4 == 0 ? "\xEF\xBB\xBF" : "";
    const bool crlf = random() % 2 == 0;
    for (const auto& record : table) {
        for (int blank = static_cast<int>(random() % 8); blank < 2; ++blank)
            text += crlf ? "\r\n" : "\n";
        for (std::size_t c = 0; c != record.size(); ++c) {
            if (c != 0) text += separator;
            const std::string& value = record[c];
            const bool blank = record.size() == 1 && value.empty();
            if (blank || value.find_first_of(special) != std::string::npos || random() % 3 == 0) {
                text += '"';
                for (const char x : value)
                    text += x == '"' ? std::string{"\"\""} : std::string{x};
                text += '"';
            } else {
                text += value;
            }
        }
        text += crlf ? "\r\n" : "\n";
    }
    if (random() % 2 == 0) text.resize(text.size() - (crlf ? 2 : 1));
    return text;
}

Table random_table(std::size_t records, std::size_t columns, std::mt19937_64& random) {
    static const std::vector<std::string> pieces{"a",  "b",  "0",    " ",  ",",        "\t", ";",
                                                 "\"", "\n", "\r\n", "\r", "\xC3\xA4", "'"};
    Table table(records, std::vector<std::string>(columns));
    for (auto& record : table)
        for (std::string& value : record)
            for (auto n = random() % 5; n != 0; --n)
                value += pieces[random() % pieces.size()];
    return table;
}

RC_GTEST_PROP(Csv, WhatIsWrittenIsRead, (std::uint64_t seed)) {
    std::mt19937_64 random{seed};
    const Folder folder;
    const char separator = ",\t;"[random() % 3];
    const std::size_t columns = 1 + random() % 4;
    Table all;
    std::vector<std::string> files;
    for (auto count = 1 + random() % 3; count != 0; --count) {
        const Table table = random_table(1 + random() % 5, columns, random);
        all.insert(all.end(), table.begin(), table.end());
        std::string text = written(table, separator, random);
        if (random() % 2 == 0) text = gzip(text.substr(0, text.size() / 2)) + gzip(text.substr(text.size() / 2));
        files.push_back(folder.write(std::to_string(count), text));
    }
    const std::size_t blocks[] = {1, 2, 3, 7, 64, 5000};
    RC_ASSERT(fields_of(files, no_header(separator), static_cast<int>(columns), blocks[random() % 6]) == all);
}

// By hand, since a writer and a reader may share a mistake.
TEST(Csv, QuotesAreThoseOfRfc4180) {
    const Folder folder;
    const auto read = [&](const std::string& text, int columns, bool quotes = true) {
        return fields_of({folder.write("a.csv", text)}, no_header(',', quotes), columns);
    };
    EXPECT_EQ(read("aaa,bbb,ccc\r\nzzz,yyy,xxx", 3), (Table{{"aaa", "bbb", "ccc"}, {"zzz", "yyy", "xxx"}}));
    EXPECT_EQ(read("\"aaa\",\"b\r\nbb\",\"ccc\"\r\nzzz,yyy,xxx\r\n", 3),
              (Table{{"aaa", "b\r\nbb", "ccc"}, {"zzz", "yyy", "xxx"}}));
    EXPECT_EQ(read("\"aaa\",\"b\"\"bb\",\"ccc\"\n", 3), (Table{{"aaa", "b\"bb", "ccc"}}));
    EXPECT_EQ(read("\"\",\"\"\"\",\"a,b\"\n", 3), (Table{{"", "\"", "a,b"}}));
    EXPECT_EQ(read(",,\n", 3), (Table{{"", "", ""}}));
    EXPECT_EQ(read("\"\n\n\"\n\n\n\"a\"", 1), (Table{{"\n\n"}, {"a"}}));
    EXPECT_EQ(read("\"a\",b\"\n", 2, false), (Table{{"\"a\"", "b\""}}));
    EXPECT_EQ(read("\"\n\n\"\n", 1, false), (Table{{"\""}, {"\""}}));
    EXPECT_EQ(read("\xEF\xBB\xBF\"a,b\",c", 2), (Table{{"a,b", "c"}}));
    EXPECT_EQ(read("a\rb,c\r\n", 2), (Table{{"a\rb", "c"}}));
    EXPECT_EQ(read("\xEF\xBB\xBF\n\n", 1), Table{});
}

TEST(Csv, WrongQuotesAndColumnsAreErrors) {
    const Folder folder;
    const auto error = [&](const std::string& text, int columns = 2) {
        const std::string file = folder.write("a.csv", text);
        const std::string what = bad_input([&] { fields_of({file}, no_header(), columns); });
        EXPECT_TRUE(what.starts_with(file + ", line ")) << what;
        return what.substr(file.size());
    };
    const std::string quotes =
        ": a quote that neither begins nor ends the value and is not doubled; if quotes mean nothing in this file, say "
        "so "
        "in the schema (\"quotes\": false)";
    EXPECT_EQ(error("a,b\n1,2\"3\"\n"), ", line 2: column 2" + quotes);
    EXPECT_EQ(error("a,b\n\"1\"2\"\",3\n"), ", line 2: column 1" + quotes);
    EXPECT_EQ(error("a,b\n1,\"2\" \n"), ", line 2: column 2" + quotes);
    EXPECT_EQ(error("a,b\n1,\"2\n"),
              ", line 2: a quote that is not closed in this file; if quotes mean nothing in it, say so in the schema "
              "(\"quotes\": false)");
    EXPECT_EQ(error("a,b\n1,\"" + std::string(sw::LineReader::longest_line / 2, '\n') +
                    std::string(sw::LineReader::longest_line, 'x') + "\"\n")
                  .substr(0, 50),
              ", line 2: a quote that is not closed within 104857");
    EXPECT_EQ(error("a,b\n1\n"), ", line 2: 1 column separated by ',', expected 2");
    EXPECT_EQ(error("a,b\n\n\"1\n\",2,3\n"), ", line 3: 3 columns separated by ',', expected 2");
    EXPECT_EQ(error("a\n1\n"), ", line 1: there is no column 2, there are 1 column");
    EXPECT_EQ(
        error("a,b\n1,2\n", 1),
        ", line 1: column 2 is in the file and not in the schema; give it a meaning there, or ignore it (\"ignore\": "
        "[...], or \"ignore\": \"others\")");
    const std::string second = folder.write("b.csv", "1,2\n");
    const std::string first = folder.write("a.csv", "a,b\n1,\"2");
    EXPECT_TRUE(bad_input([&] {
                    fields_of({first, second}, no_header(), 2);
                }).starts_with(first + ", line 2: a quote that is not closed"));
}

/// A click log: labels `no` and `yes`, two dense columns, an hour, a user, two items that share a table, tags.
CsvSchema clicks() {
    return {.format = {.missing_values = {"", "NULL"}, .ignore = {{.name = "id"}}},
            .label = {.column = {.name = "click"}, .positive = {"yes"}, .negative = {"no"}},
            .dense = {{.column = {.name = "price"}}, {.column = {.name = "count"}, .log1p = true, .missing = 2.5F}},
            .categorical =
                {{.column = {.name = "seen"}, .table = "item"},
                 {.column = {.name = "time"}, .time = {.form = "%Y-%m-%d %H:%M:%S", .part = TimePart::hour}},
                 {.column = {.name = "bought"}, .table = "item", .rows = 50},
                 {.column = {.name = "user"}, .ids = CsvIds::modulo, .missing = CsvMissing::row, .missing_row = 3},
                 {.column = {.name = "tags"}, .split = '|'}},
            .rows = 1000,
            .seed = 7};
}
const std::vector<std::string> names{"id", "click", "price", "count", "time", "user", "seen", "bought", "tags"};

struct Clicked {
    float label = 0;
    std::vector<float> dense = {};
    std::vector<std::vector<std::int64_t>> bags = {};
    bool operator==(const Clicked&) const = default;
};

struct Written {
    Table records;
    std::vector<Clicked> samples;
};

/// Records of clicks() and what they mean, worked out apart from the library.
Written random_clicks(std::size_t count, std::mt19937_64& random) {
    const auto hash = [](const std::string& text, std::uint64_t rows) {
        return static_cast<std::int64_t>(XXH64(text.data(), text.size(), 7) % rows);
    };
    const auto two = [](std::uint64_t n) { return (n < 10 ? "0" : "") + std::to_string(n); };
    Written all;
    for (std::size_t i = 0; i != count; ++i) {
        Clicked sample{.label = static_cast<float>(random() % 2)};
        std::vector<std::string> record{std::to_string(i), sample.label == 1 ? "yes" : "no"};
        const auto price = static_cast<double>(random() % 1000) / 8;
        const bool priced = random() % 4 != 0;
        record.push_back(priced ? std::to_string(price) : "NULL");
        sample.dense.push_back(priced ? static_cast<float>(price) : 0);
        const auto counted = static_cast<std::int64_t>(random() % 5000) - 500;
        const bool known = random() % 4 != 0;
        record.push_back(known ? std::to_string(counted) : "");
        sample.dense.push_back(
            known ? static_cast<float>(std::log1p(static_cast<double>(std::max<std::int64_t>(counted, 0)))) : 2.5F);
        const auto hour = random() % 24;
        record.push_back("2017-11-" + two(1 + random() % 30) + " " + two(hour) + ":" + two(random() % 60) + ":" +
                         two(random() % 60));
        const auto user = static_cast<std::int64_t>(random() % 100'000) - 50'000;
        const bool named = random() % 4 != 0;
        record.push_back(named ? std::to_string(user) : "");
        std::vector<std::int64_t> items;
        for (int item = 0; item != 2; ++item) {
            record.push_back(random() % 4 == 0 ? "NULL" : std::string(1 + random() % 3, "ab,\"\n"[random() % 5]));
            items.push_back(hash(record.back() == "NULL" ? "" : record.back(), 50));
        }
        std::string tags;
        std::vector<std::int64_t> tag_ids;
        for (auto n = random() % 4; n != 0; --n) {
            const std::string tag = random() % 5 == 0 ? "NULL" : std::string(random() % 3, "xyz"[random() % 3]);
            tags += (tags.empty() ? "" : "|") + tag;
            if (tag != "NULL" && !tag.empty()) tag_ids.push_back(hash(tag, 1000));
        }
        record.push_back(tags);
        // Features of one table stand together: item has two.
        sample.bags = {{items[0]},
                       {items[1]},
                       {static_cast<std::int64_t>(hour)},
                       {named ? ((user % 1000) + 1000) % 1000 : 3},
                       tag_ids};
        all.records.push_back(record);
        all.samples.push_back(sample);
    }
    return all;
}

std::vector<std::vector<Clicked>> read_all(CsvReader& reader) {
    std::vector<std::vector<Clicked>> batches;
    for (sw::ClickBatch batch; reader.next(batch);) {
        const auto view = batch.ids.view();
        view.validate();
        EXPECT_EQ(std::ssize(batch.labels), batch.samples());
        EXPECT_EQ(std::ssize(batch.dense), batch.samples() * batch.dense_columns);
        auto& samples = batches.emplace_back(static_cast<std::size_t>(batch.samples()));
        std::size_t id = 0;
        for (std::int64_t f = 0; f != batch.ids.features; ++f)
            for (std::size_t s = 0; s != samples.size(); ++s) {
                auto& bag = samples[s].bags.emplace_back();
                for (auto n = view.length(f * batch.samples() + static_cast<std::int64_t>(s)); n != 0; --n)
                    bag.push_back(view.values[id++]);
            }
        for (std::size_t s = 0; s != samples.size(); ++s) {
            samples[s].label = batch.labels[s];
            const float* dense = batch.dense_view().row(static_cast<std::int64_t>(s));
            samples[s].dense.assign(dense, dense + batch.dense_columns);
        }
    }
    return batches;
}
std::vector<Clicked> joined(const std::vector<std::vector<Clicked>>& batches) {
    std::vector<Clicked> all;
    for (const auto& batch : batches)
        all.insert(all.end(), batch.begin(), batch.end());
    return all;
}

RC_GTEST_PROP(Csv, RecordsBecomeSamplesInWhicheverWayTheyAreWritten, (std::uint64_t seed)) {
    std::mt19937_64 random{seed};
    const Folder folder;
    std::vector<Clicked> expected;
    std::vector<std::string> files;
    for (auto count = 1 + random() % 3; count != 0; --count) {
        Written clicks_written = random_clicks(random() % 6 + (count == 1 ? 1 : 0), random);
        expected.insert(expected.end(), clicks_written.samples.begin(), clicks_written.samples.end());
        Table table{names};
        table.insert(table.end(), clicks_written.records.begin(), clicks_written.records.end());
        std::vector<std::size_t> order(names.size());  // of the columns in this file
        for (std::size_t c = 0; c != order.size(); ++c)
            order[c] = c;
        std::shuffle(order.begin(), order.end(), random);
        for (auto& record : table) {
            std::vector<std::string> moved;
            for (const std::size_t c : order)
                moved.push_back(record[c]);
            record = moved;
        }
        std::string text = written(table, ',', random);
        if (random() % 2 == 0) text = gzip(text);
        files.push_back(folder.write(std::to_string(count), text));
    }
    const std::size_t blocks[] = {1, 2, 7, 64, 300, 5000};
    CsvReader reader{
        {.files = files, .schema = clicks(), .slice = {.batch = 1000}, .block_bytes = blocks[random() % 6]}};
    RC_ASSERT(joined(read_all(reader)) == expected);
    reader.rewind();
    RC_ASSERT(joined(read_all(reader)) == expected);
}

TEST(Csv, RanksShareTheStream) {
    const Folder folder;
    std::mt19937_64 random{3};
    for (const std::size_t count : {1U, 5U, 12U, 25U, 60U}) {
        const Written all = random_clicks(count, random);
        Table parts[2] = {{names}, {names}};
        for (std::size_t i = 0; i != count; ++i)
            parts[i < count / 3 ? 0 : 1].push_back(all.records[i]);
        const std::vector<std::string> files{folder.write("a", written(parts[0], ',', random)),
                                             folder.write("b", gzip(written(parts[1], ',', random)))};
        for (const int ranks : {1, 2, 3, 7}) {
            for (const std::int64_t batch : {1, 3, 4, 200}) {
                std::vector<std::vector<std::vector<Clicked>>> by_rank;
                for (int rank = 0; rank != ranks; ++rank) {
                    CsvReader reader{{.files = files,
                                      .schema = clicks(),
                                      .slice = {.batch = batch, .rank = rank, .ranks = ranks},
                                      .block_bytes = 100}};
                    by_rank.push_back(read_all(reader));
                }
                const auto global = static_cast<std::size_t>(batch * ranks);
                std::vector<Clicked> stream;
                for (std::size_t g = 0; g != (count + global - 1) / global; ++g)
                    for (const auto& batches : by_rank) {
                        ASSERT_EQ(batches.size(), (count + global - 1) / global);
                        stream.insert(stream.end(), batches[g].begin(), batches[g].end());
                    }
                ASSERT_EQ(stream, all.samples);
            }
        }
    }
}

TEST(Csv, ALoaderReadsAheadOfIt) {
    const Folder folder;
    std::mt19937_64 random{4};
    const Written all = random_clicks(50, random);
    Table table{names};
    table.insert(table.end(), all.records.begin(), all.records.end());
    CsvReader reader{
        {.files = {folder.write("a", written(table, ',', random))}, .schema = clicks(), .slice = {.batch = 8}}};
    sw::PrefetchingLoader<CsvReader> loader{std::move(reader)};
    for (int pass = 0; pass != 2; ++pass, loader.rewind()) {
        std::vector<float> labels;
        while (const sw::ClickBatch* batch = loader.next())
            labels.insert(labels.end(), batch->labels.begin(), batch->labels.end());
        ASSERT_EQ(labels.size(), 50U);
        for (std::size_t i = 0; i != labels.size(); ++i)
            EXPECT_EQ(labels[i], all.samples[i].label);
    }
}

/// Of a file that is right but for one value.
class WrongValue {
  public:
    explicit WrongValue(CsvSchema schema, const std::string& label = "yes", const std::string& tags = "x|y")
        : schema_{std::move(schema)}, good_{"5", label, "1.5", "-3", "2017-11-06 14:32:21", "77", "a", "b", tags} {}
    std::string operator()(const std::string& column, const std::string& value) const {
        Table records(3, good_);
        const auto at = static_cast<std::size_t>(std::find(names.begin(), names.end(), column) - names.begin());
        records[1][at] = value;
        std::string text;
        for (const auto& record : {names, records[0], records[1], records[2]}) {
            for (std::size_t c = 0; c != record.size(); ++c)
                text += (c == 0 ? "" : ",") + record[c];
            text += '\n';
        }
        const std::string file = folder_.write("a.csv", text);
        CsvReader reader{{.files = {file}, .schema = schema_, .slice = {.batch = 2}}};
        const std::string what = bad_input([&] { read_all(reader); });
        EXPECT_EQ(bad_input([&] { read_all(reader); }), what);
        EXPECT_TRUE(what.starts_with(file + ", line 3: ")) << what;
        return what.substr(std::min(what.size(), file.size() + 10));
    }

  private:
    Folder folder_;
    CsvSchema schema_;
    std::vector<std::string> good_;
};

TEST(Csv, ErrorsNameFileLineColumnAndValue) {
    CsvSchema schema = clicks();
    const WrongValue with{schema};
    EXPECT_EQ(with("click", "maybe"),
              "column 2 (click): 'maybe', expected one of the label's positive or negative values");
    EXPECT_EQ(with("click", "NULL"), "column 2 (click): 'NULL', a missing value: every sample has a label");
    for (const char* value : {"1x", " 1", "+1", "nan", "inf", "1e400", "1e300", "0x10", "--1"})
        EXPECT_EQ(with("price", value), "column 3 (price): '" + std::string{value} + "', expected a number");
    EXPECT_EQ(with("time", "2017-11-31 00:00:00"),
              "column 5 (time): '2017-11-31 00:00:00', expected a time of the form %Y-%m-%d %H:%M:%S");
    EXPECT_EQ(
        with("time", ""),
        "column 5 (time): '', a missing value, which is an error unless the schema says what it becomes (\"missing\")");
    EXPECT_EQ(with("user", "9223372036854775808"),
              "column 6 (user): '9223372036854775808', expected a whole number of 64 bits");
    EXPECT_EQ(with("user", "1.5"), "column 6 (user): '1.5', expected a whole number of 64 bits");
    schema.dense[0].missing.reset();
    EXPECT_EQ(WrongValue{schema}("price", ""),
              "column 3 (price): '', a missing value, which the schema says is an error");

    schema = clicks();
    schema.categorical[4].ids = CsvIds::row;
    schema.categorical[3].ids = CsvIds::row;
    schema.categorical[3].rows = 100'000;
    const WrongValue as_row{schema, "yes", "7"};
    EXPECT_EQ(as_row("user", "-1"),
              "column 6 (user): '-1', expected a row of table 'user', a whole number from 0 to 99999");
    EXPECT_EQ(as_row("user", "100000"),
              "column 6 (user): '100000', expected a row of table 'user', a whole number from 0 to 99999");
    EXPECT_EQ(as_row("tags", "1|2|x"),
              "column 9 (tags): 'x', expected a row of table 'tags', a whole number from 0 to 999");

    schema = clicks();
    schema.label = {.column = {.name = "click"}};
    EXPECT_EQ((WrongValue{schema, "1"}("click", "2")), "column 2 (click): '2', expected a label of 0 or 1");
}

// The line of a value behind line breaks within quotes is its own.
TEST(Csv, LinesCountLineBreaksWithinQuotes) {
    const Folder folder;
    const CsvSchema schema{.label = {.column = {.name = "y"}},
                           .categorical = {{.column = {.name = "a"}}, {.column = {.name = "b"}, .ids = CsvIds::row}},
                           .rows = 10};
    const std::string file = folder.write("a.csv", "a,b,y\n\"1\n\n2\"\"\",7,1\n\"\n\"\"\n\",x,0\n");
    CsvReader reader{{.files = {file}, .schema = schema, .slice = {.batch = 10}}};
    EXPECT_EQ(bad_input([&] { read_all(reader); }),
              file + ", line 7: column 2 (b): 'x', expected a row of table 'b', a whole number from 0 to 9");
}

TEST(Csv, LabelsAreZeroAndOneOrValuesOrAThreshold) {
    const Folder folder;
    const std::string file = folder.write("a.csv", "y,c\n0,a\n1,a\n1.0,a\n");
    const auto labels = [&](const std::string& text, const sw::CsvLabel& label) {
        CsvReader reader{{.files = {folder.write("a.csv", text)},
                          .schema = {.format = {.separator = ';', .header = false},
                                     .label = label,
                                     .categorical = {{.column = {.number = 2}}},
                                     .rows = 5},
                          .slice = {.batch = 10}}};
        std::vector<float> all;
        for (const Clicked& sample : joined(read_all(reader)))
            all.push_back(sample.label);
        return all;
    };
    const sw::CsvColumn first{.number = 1};
    EXPECT_EQ(labels("0;a\n1;a\n1.0;a\n0e5;a\n", {.column = first}), (std::vector<float>{0, 1, 1, 0}));
    EXPECT_EQ(labels("1e-400;a\n-1e-320;a\n1e-400;a\n", {.column = first, .at_least = 0}),
              (std::vector<float>{1, 0, 1}));
    EXPECT_EQ(labels("3.5;a\n4;a\n-1;a\n5;a\n", {.column = first, .at_least = 4}), (std::vector<float>{0, 1, 0, 1}));
    EXPECT_EQ(labels("x;a\ny;a\nz;a\n", {.column = first, .positive = {"x", "z"}}), (std::vector<float>{1, 0, 1}));
    EXPECT_NE(bad_input([&] { labels("2;a\n", {.column = first}); }).find("column 1: '2', expected a label of 0 or 1"),
              std::string::npos);
    EXPECT_NE(
        bad_input([&] { labels("x;a\n", {.column = first, .at_least = 4}); }).find("column 1: 'x', expected a number"),
        std::string::npos);
}

TEST(Csv, HeadersHaveToFit) {
    const Folder folder;
    const auto error = [&](const std::string& header, const std::string& second = "") {
        std::vector<std::string> files{folder.write("a.csv", header + "\n")};
        if (!second.empty()) files.push_back(folder.write("b.csv", second + "\n"));
        CsvReader reader{{.files = files, .schema = clicks(), .slice = {.batch = 10, .rank = 1, .ranks = 2}}};
        const std::string what = bad_input([&] { read_all(reader); });
        EXPECT_TRUE(what.starts_with(files.back())) << what;
        return what.substr(std::min(what.size(), files.back().size()));
    };
    const std::string all = "id,click,price,count,time,user,seen,bought,tags";
    EXPECT_EQ(error("id,clik,price,count,time,user,seen,bought,tags"),
              ", line 1: there is no column 'click'; the columns are 'id' 'clik' 'price' 'count' "
              "'time' 'user' 'seen' 'bought' 'tags'");
    EXPECT_EQ(error(all + ",tags"), ", line 1: there are two columns 'tags': give the number of one of them");
    EXPECT_EQ(error("click,price,count,time,user,seen,bought,tags"),
              ", line 1: there is no column 'id'; the columns are 'click' 'price' 'count' 'time' "
              "'user' 'seen' 'bought' 'tags'");
    EXPECT_TRUE(error(all + ",more").starts_with(", line 1: column 10 (more) is in the file and not in the schema"))
        << error(all + ",more");
    EXPECT_TRUE(error(all, "\n" + all + ",more").starts_with(", line 2: column 10 (more)"));
    EXPECT_EQ(error(all), ": no samples: every file is empty");
}

TEST(Csv, ColumnsHaveNumbersOrNamesOfTheSchemaWhereThereIsNoHeader) {
    const Folder folder;
    const std::string file = folder.write("a.tsv", "1\t5\tx\n0\t6\ty\n");
    CsvSchema schema{.format = {.separator = '\t', .header = false, .ignore_others = true},
                     .label = {.column = {.number = 1}},
                     .categorical = {{.column = {.number = 2}, .ids = CsvIds::row}},
                     .rows = 10};
    const std::vector<Clicked> expected{{.label = 1, .bags = {{5}}}, {.label = 0, .bags = {{6}}}};
    {
        CsvReader reader{{.files = {file}, .schema = schema, .slice = {.batch = 10}}};
        EXPECT_EQ(joined(read_all(reader)), expected);
        EXPECT_EQ(schema.tables(4)[0].name, "column2");
    }
    schema.format.names = {"y", "item", "what"};
    schema.format.ignore_others = false;
    schema.format.ignore = {{.name = "what"}};
    schema.categorical[0].column = {.name = "item"};
    {
        CsvReader reader{{.files = {file}, .schema = schema, .slice = {.batch = 10}}};
        EXPECT_EQ(joined(read_all(reader)), expected);
    }
    schema.format.names.pop_back();
    EXPECT_EQ(bad_input([&] { (CsvReader{{.files = {file}, .schema = schema}}); }),
              "the names of the columns: there is no column 'what'; the columns are 'y' "
              "'item'");
}

// A rank that has a bad sample says so; the others read all of theirs.
TEST(Csv, TheOwnerOfASampleNamesItsError) {
    const Folder folder;
    std::string text = "y,a\n";
    for (int i = 0; i != 60; ++i)
        text += i == 37 ? "1,x\n" : "0,1\n";
    const std::string file = folder.write("a.csv", text);
    const CsvSchema schema{
        .label = {.column = {.name = "y"}}, .categorical = {{.column = {.name = "a"}, .ids = CsvIds::row}}, .rows = 10};
    expect_owner_names(
        7, file + ", line 39: column 2 (a): 'x', expected a row of table 'a', a whole number from 0 to 9",
        [&](const sw::Slice& slice) { return CsvReader{{.files = {file}, .schema = schema, .slice = slice}}; });
}

TEST(Csv, BatchesAreUsedAgain) {
    const Folder folder;
    std::string text = "y,a,b\n";
    for (int i = 0; i != 100; ++i)
        text += "1,u,v\n";
    CsvReader reader{{.files = {folder.write("a.csv", text)},
                      .schema = {.label = {.column = {.name = "y"}},
                                 .categorical = {{.column = {.name = "a"}}, {.column = {.name = "b"}}},
                                 .rows = 10},
                      .slice = {.batch = 7}}};
    expect_batches_used_again(reader);
}

TEST(Csv, HistoriesAreInTheOrderOfTime) {
    const Folder folder;
    const std::string file = folder.write("a.csv",
                                          "time,item,rating,user\n30,5,x,anna\n10,6,x,\"b,ob\"\n20,7,x,anna\n30,8,x,"
                                          "anna\n5,9,x,\"b,ob\"\n");
    sw::CsvHistorySchema schema{.format = {.ignore_others = true},
                                .user = {.name = "user"},
                                .item = {.name = "item"},
                                .time_column = {.name = "time"},
                                .time_form = "%s"};
    const auto items_of = [&](const sw::Histories& all, const std::string& user) {
        const auto hash = static_cast<std::int64_t>(XXH64(user.data(), user.size(), 0));
        const auto at = std::find(all.users.begin(), all.users.end(), hash) - all.users.begin();
        const auto items = all.of(at);
        return std::vector<std::int64_t>(items.begin(), items.end());
    };
    const sw::Histories timed = sw::read_histories({file}, schema, 7);
    EXPECT_EQ(timed.size(), 2);
    EXPECT_EQ(timed.rows, 10);
    EXPECT_EQ(items_of(timed, "anna"), (std::vector<std::int64_t>{7, 5, 8}));
    EXPECT_EQ(items_of(timed, "b,ob"), (std::vector<std::int64_t>{9, 6}));
    schema.time_form.clear();
    EXPECT_EQ(items_of(sw::read_histories({file}, schema), "anna"), (std::vector<std::int64_t>{5, 7, 8}));
    schema.rows = 8;
    EXPECT_EQ(bad_input([&] { static_cast<void>(sw::read_histories({file}, schema)); }),
              file + ", line 5: column 2 (item): '8', expected an item, a whole number from 0 to 7");
    schema.hash = true;
    for (const std::int64_t item : sw::read_histories({file}, schema).items)
        EXPECT_LT(item, 8);
    schema.time_form = "%H";
    EXPECT_EQ(bad_input([&] {
                  static_cast<void>(sw::read_histories({folder.write("b.csv", "time,item,user\n24,5,a\n")}, schema));
              }),
              folder.path() + "/b.csv, line 2: column 1 (time): '24', expected a time of the form %H");
    EXPECT_EQ(
        bad_input(
            [&] { static_cast<void>(sw::read_histories({folder.write("b.csv", "time,item,user\n23,,a\n")}, schema)); }),
        folder.path() + "/b.csv, line 2: column 2 (item): '', a missing value, and there is no history without it");
}

TEST(Csv, TimesAreReadByTheirForms) {
    const auto time = [](const char* text, const char* form) { return sw::parse_time(text, form); };
    EXPECT_EQ(time("1970-01-01 00:00:00", "%Y-%m-%d %H:%M:%S"), 0);
    EXPECT_EQ(time("2017-11-06 14:32:21", "%Y-%m-%d %H:%M:%S"), 1509978741);
    EXPECT_EQ(time("14102100", "%y%m%d%H"), 1413849600);
    EXPECT_EQ(time("69123123", "%y%m%d%H"), -3600);
    EXPECT_EQ(time("-1", "%s"), -1);
    EXPECT_EQ(time("2000-02-29T01:02:03.456Z", "%Y-%m-%dT%H:%M:%S.%fZ"), 951786123);
    EXPECT_EQ(time("12%", "%H%%"), 12 * 3600);
    for (const char* wrong :
         {"2017-02-29", "2017-2-01", "2017-13-01", "2017-00-01", "2017-01-00", "2017-01-01 ", "2017-01-0x", ""})
        EXPECT_EQ(time(wrong, "%Y-%m-%d"), std::nullopt) << wrong;
    EXPECT_EQ(time("24", "%H"), std::nullopt);
    EXPECT_EQ(time("60", "%M"), std::nullopt);
    EXPECT_EQ(time("9223372036854775808", "%s"), std::nullopt);
    using enum TimePart;
    const std::int64_t monday = *time("2017-11-06 14:32:21", "%Y-%m-%d %H:%M:%S");
    EXPECT_EQ((std::vector{sw::time_part(monday, minute), sw::time_part(monday, hour), sw::time_part(monday, weekday),
                           sw::time_part(monday, day), sw::time_part(monday, month)}),
              (std::vector<std::int64_t>{32, 14, 0, 6, 11}));
    for (const std::int64_t seconds :
         {std::int64_t{-1}, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()})
        for (const TimePart part : {minute, hour, weekday, day, month}) {
            EXPECT_GE(sw::time_part(seconds, part), 0);
            EXPECT_LT(sw::time_part(seconds, part), sw::time_part_rows(part));
        }
    EXPECT_EQ(sw::time_part(-1, weekday), 2);  // Wednesday, 31 December 1969
    EXPECT_EQ(sw::time_part(-1, day), 31);
    EXPECT_EQ(sw::time_part(std::numeric_limits<std::int64_t>::min(), hour), 8);  // 2^63 seconds before: 08:29:52
    EXPECT_EQ(sw::time_part(std::numeric_limits<std::int64_t>::min(), minute), 29);
    for (const char* wrong : {"%Q", "%", "hour", "%%"})
        EXPECT_THROW(sw::check_time_form(wrong), sw::BadInput) << wrong;
}

}  // namespace
}  // namespace shardwise_test
