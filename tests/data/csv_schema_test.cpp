// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "data/support.hpp"
#include "shardwise/data/csv_schema_file.hpp"

namespace shardwise_test {
namespace {

namespace sw = shardwise;

sw::CsvSchema schema_of(const std::string& json, std::int64_t rows = 0) {
    const Folder folder;
    return sw::read_csv_schema(folder.write("s.json", json), rows);
}
/// What is wrong, behind the name of the file.
std::string wrong(const std::string& json) {
    const Folder folder;
    const std::string file = folder.write("s.json", json);
    const std::string what = bad_input([&] { static_cast<void>(sw::read_csv_schema(file)); });
    EXPECT_TRUE(what.starts_with(file)) << what;
    return what.substr(std::min(what.size(), file.size()));
}

TEST(CsvSchemaFile, HasAllThatASchemaHas) {
    const sw::CsvSchema all = schema_of(R"({
        "separator": "\t", "quotes": false, "header": ["y", "p", "q", "t", "a", "b", "c", "d"], "missing_values": ["", "NULL"],
        "ignore": ["d", 7], "label": {"column": "y", "positive": ["yes", "ja"], "negative": "no"}, "rows": 100, "seed": 9,
        "dense": ["p", {"column": 3, "transform": "log1p", "missing": "error"}, {"column": "t", "time": "%H%M", "part": "minute", "missing": -1}],
        "categorical": ["a",
            {"column": "b", "name": "second", "table": "a", "ids": "row", "missing": 4},
            {"column": "a", "name": "bag", "split": "|", "rows": 5, "ids": "modulo", "missing": "empty"},
            {"column": "t", "time": "%H%M", "part": "hour"}, {"column": "b", "missing": "own_id"}, {"column": "q", "missing": "error"}]})");
    EXPECT_EQ(all.format.separator, '\t');
    EXPECT_FALSE(all.format.quotes || all.format.header || all.format.ignore_others);
    EXPECT_EQ(all.format.names.size(), 8U);
    EXPECT_EQ(all.format.missing_values, (std::vector<std::string>{"", "NULL"}));
    EXPECT_EQ(all.format.ignore, (std::vector<sw::CsvColumn>{{.name = "d"}, {.number = 7}}));
    EXPECT_EQ(all.label.column.name, "y");
    EXPECT_EQ(all.label.positive, (std::vector<std::string>{"yes", "ja"}));
    EXPECT_EQ(all.label.negative, std::vector<std::string>{"no"});
    EXPECT_EQ(all.rows, 100);
    EXPECT_EQ(all.seed, 9U);
    ASSERT_EQ(all.dense.size(), 3U);
    EXPECT_EQ(all.dense[0].column.name, "p");
    EXPECT_EQ(all.dense[0].missing, 0.0F);
    EXPECT_TRUE(all.dense[1].log1p && !all.dense[1].missing && all.dense[1].column.number == 3);
    EXPECT_EQ(all.dense[2].time.part, sw::TimePart::minute);
    EXPECT_EQ(all.dense[2].missing, -1.0F);
    const auto& c = all.categorical;
    ASSERT_EQ(c.size(), 6U);
    EXPECT_EQ(c[0].when_missing(), sw::CsvMissing::own_id);
    EXPECT_TRUE(c[1].ids == sw::CsvIds::row && c[1].missing == sw::CsvMissing::row && c[1].missing_row == 4);
    EXPECT_TRUE(c[2].ids == sw::CsvIds::modulo && c[2].split == '|' && c[2].when_missing() == sw::CsvMissing::empty);
    EXPECT_TRUE(c[3].time.part == sw::TimePart::hour && c[3].when_missing() == sw::CsvMissing::error);
    EXPECT_EQ(c[5].when_missing(), sw::CsvMissing::error);

    const auto tables = all.tables(8);
    ASSERT_EQ(tables.size(), 5U);
    EXPECT_EQ(tables[0].name, "a");
    EXPECT_EQ(tables[0].features, (std::vector<std::string>{"a", "second"}));
    EXPECT_EQ(tables[0].rows, 100);
    EXPECT_EQ(tables[0].dim, 8);
    EXPECT_EQ(tables[1].rows, 5);
    EXPECT_EQ(tables[2].rows, 24);
    EXPECT_EQ(tables[3].name, "b");
}

TEST(CsvSchemaFile, LittleIsEnough) {
    const sw::CsvSchema all = schema_of(
        R"({"label": {"column": 1, "at_least": 3.5}, "header": false, "ignore": "others", "categorical": [2]})", 77);
    EXPECT_EQ(all.label.at_least, 3.5);
    EXPECT_TRUE(all.format.quotes && !all.format.header && all.format.ignore_others && all.format.separator == ',');
    EXPECT_EQ(all.format.missing_values, std::vector<std::string>{""});
    EXPECT_EQ(all.tables(1)[0].rows, 77);
    EXPECT_FALSE(all.has_bags());
    EXPECT_EQ(schema_of(R"({"label": "y", "categorical": ["a"], "rows": 5})", 77).tables(1)[0].rows, 5);
}

TEST(CsvSchemaFile, SaysWhatHistoriesAre) {
    const Folder folder;
    const auto history = [&](const std::string& json, std::int64_t rows = 0) {
        return sw::read_csv_history_schema(folder.write("s.json", json), rows);
    };
    const auto all = history(R"({"separator": ";", "ignore": ["title"], "seed": 3, "label": "rating", "history":
        {"user": "u", "item": "i", "time": {"column": "t", "form": "%s"}, "ids": "hash", "rows": 50}})");
    EXPECT_TRUE(all.format.separator == ';' && all.format.ignore_others && all.hash);
    EXPECT_EQ(all.user.name + all.item.name + all.time_column.name + all.time_form, "uit%s");
    EXPECT_EQ(all.rows, 50);
    EXPECT_EQ(all.seed, 3U);
    const auto little = history(R"({"header": false, "history": {"user": 1, "item": 2}})", 9);
    EXPECT_TRUE(little.item.number == 2 && little.time_form.empty() && !little.hash && little.rows == 9);

    const auto wrong_history = [&](const std::string& json) {
        const std::string what = bad_input([&] { history(json); });
        return what.substr(what.find("s.json") + 6);
    };
    EXPECT_EQ(wrong_history(R"({"label": "y"})"),
              R"(: key 'history' is missing; give {"user": COLUMN, "item": COLUMN})");
    EXPECT_EQ(wrong_history(R"({"history": {"user": "u"}})"),
              ", history: key 'item' is missing; give the name or the number of a column");
    EXPECT_EQ(wrong_history(R"({"history": {"user": "u", "item": "i", "time": {"column": "t"}}})"),
              ", history, time: key 'form' is missing; say how times are written, such as \"%s\"");
    EXPECT_EQ(wrong_history(R"({"history": {"user": "u", "item": "i", "ids": "hash"}})"),
              ": items in a table of 0 rows: give at least 1");
}

TEST(CsvSchemaFile, ErrorsNameThePlace) {
    const std::string rest = R"("label": "y", "rows": 10, "categorical": ["a"])";
    const auto with = [&](const std::string& more) { return wrong("{" + rest + ", " + more + "}"); };
    const auto category = [&](const std::string& more) {
        return wrong(R"({"label": "y", "rows": 10, "categorical": ["b", {"column": "a", )" + more + "}]}");
    };
    EXPECT_EQ(wrong("[]"), ": [], expected an object: {...}");
    EXPECT_TRUE(wrong("{\"label\": }").starts_with(": is no JSON: parse error at line 1, column 11: syntax error"))
        << wrong("{\"label\": }");
    EXPECT_EQ(
        with(R"("seperator": ",")"),
        ": there is no key 'seperator'; give one of separator, quotes, header, missing_values, ignore, label, dense, "
        "categorical, rows, seed, history");
    EXPECT_EQ(with(R"("rows": 11)"), ": an object has the key 'rows' twice");
    EXPECT_EQ(category(R"("colum": 1)"),
              ", entry 2 of 'categorical': there is no key 'colum'; give one of column, name, table, rows, ids, split, "
              "time, part, "
              "missing");
    EXPECT_EQ(with(R"("separator": ",,")"),
              R"(, key 'separator': ",,", expected one character, such as "," or "\t" or "|")");
    EXPECT_EQ(with(R"("separator": "\"")"), ": a separator '\"': give a comma, a tab or the like");
    EXPECT_EQ(with(R"("header": 3)"), ", key 'header': 3, expected true, false, or a list of the names of all columns");
    EXPECT_EQ(with(R"("header": false)"),
              ": column 'y' has a name, and files without a header line have none: give numbers of columns, or the "
              "names of all "
              "of them");
    EXPECT_EQ(with(R"("ignore": "id")"), ", key 'ignore': \"id\", expected a list of columns, or \"others\"");
    EXPECT_EQ(with(R"("ignore": ["a"])"), ": column 'a' is to be ignored, and is read: leave one of the two out");
    EXPECT_EQ(with(R"("ignore": [0])"), ", key 'ignore': 0, expected the name of a column, or its number, from 1 on");
    EXPECT_EQ(with(R"("seed": -1)"), ", key 'seed': -1, expected a whole number from 0 on");
    EXPECT_EQ(with(R"("quotes": 1)"), ", key 'quotes': 1, expected true or false");
    EXPECT_EQ(with(R"("dense": "p")"), ", key 'dense': \"p\", expected a list of columns");
    EXPECT_EQ(with(R"("dense": [{"column": "p", "transform": "log"}])"),
              ", entry 1 of 'dense', key 'transform': \"log\", expected \"none\" or \"log1p\"");
    EXPECT_EQ(with(R"("dense": [{"column": "p", "missing": "own_id"}])"),
              ", entry 1 of 'dense', key 'missing': \"own_id\", expected a number, or \"error\"");
    EXPECT_EQ(with(R"("dense": ["y"])"), ": column 'y' is the label, and a feature too: a model would read the answer");
    EXPECT_EQ(wrong(R"({"rows": 10, "categorical": ["a"]})"),
              ": key 'label' is missing; give the name or the number of a column");
    EXPECT_EQ(wrong(R"({"rows": 10, "label": "y"})"), ": there is no categorical column: give at least one");
    EXPECT_EQ(wrong(R"({"label": "y", "categorical": ["a"]})"),
              ": table 'a' has 0 rows: give at least 1 for it, or for all");
    EXPECT_EQ(wrong(R"({"label": {"column": "y", "positive": "1", "at_least": 1}, "rows": 10, "categorical": ["a"]})"),
              ": column 'y', the label, has positive values and a threshold: give one of them");
    EXPECT_EQ(wrong(R"({"label": {"column": "y", "negative": "1"}, "rows": 10, "categorical": ["a"]})"),
              ": column 'y', the label, has negative values alone: give the positive ones");
    EXPECT_EQ(wrong(R"({"label": {"column": "y", "positive": 1}, "rows": 10, "categorical": ["a"]})"),
              ", label, key 'positive': 1, expected a text or a list of texts");
    EXPECT_EQ(category(R"("rows": 0)"), ", entry 2 of 'categorical', key 'rows': 0, expected a whole number from 1 on");
    EXPECT_EQ(category(R"("ids": "raw")"),
              ", entry 2 of 'categorical', key 'ids': \"raw\", expected \"hash\", \"row\" or \"modulo\"");
    EXPECT_EQ(category(R"("missing": 10)"), ": column 'a': a missing value becomes row 10, and the rows are 0 to 9");
    EXPECT_EQ(category(R"("missing": "own_id", "ids": "row")"),
              ": column 'a': a missing value has an id of its own where values are hashed; give a row, "
              "empty or error");
    EXPECT_EQ(
        category(R"("missing": "none")"),
        R"(, entry 2 of 'categorical', key 'missing': "none", expected the number of a row, "own_id", "empty" or "error")");
    EXPECT_EQ(category(R"("time": "%H")"),
              ", entry 2 of 'categorical': key 'time' without 'part'; say which part of it: minute, hour, weekday, day "
              "or month");
    EXPECT_EQ(category(R"("part": "hour")"),
              ", entry 2 of 'categorical': key 'part' without 'time'; say how times are written, such as \"%Y-%m-%d "
              "%H:%M:%S\"");
    EXPECT_EQ(category(R"("time": "%H", "part": "year")"),
              ", entry 2 of 'categorical', key 'part': \"year\", expected \"minute\", \"hour\", \"weekday\", \"day\" "
              "or \"month\"");
    EXPECT_EQ(category(R"("time": "%Q", "part": "hour")"),
              ": a time of the form '%Q': give %Y %y %m %d %H %M %S %f or %s, and %% for a percent");
    EXPECT_EQ(category(R"("time": "%H", "part": "hour", "ids": "row")"),
              ", entry 2 of 'categorical': key 'ids' has no effect with 'time': a part of a time is the row");
    EXPECT_EQ(category(R"("time": "%H", "part": "hour", "rows": 23)"),
              ": column 'a': its part of a time takes 24 rows, and its table has 23");
    EXPECT_EQ(category(R"("split": ",")"), ": column 'a' is split at ',', which ends a column or a line");
    EXPECT_EQ(category(R"("name": "b")"), ": two features are named 'b': give one of them another name");
    EXPECT_EQ(category(R"("table": "b", "rows": 3}, {"column": "c", "table": "b", "rows": 4)"),
              ": table 'b' has 3 rows and 4: say it once, or the same for all features of it");
    EXPECT_EQ(bad_input([] { static_cast<void>(sw::read_csv_schema("/nonexistent/s.json")); }),
              "/nonexistent/s.json: cannot be read");
}

}  // namespace
}  // namespace shardwise_test
