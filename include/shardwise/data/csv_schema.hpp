// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/data/quoted.hpp"
#include "shardwise/data/time_text.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// What the columns of CSV and TSV files mean to a model of clicks, or of histories.

namespace shardwise::inline SHARDWISE_ABI {

/// A column: by its name, or by its number.
struct CsvColumn {
    std::string name = {};
    int number = 0;  ///< from 1; 0: by name

    bool operator==(const CsvColumn&) const = default;
    /// "column 'hour'", or "column 3".
    [[nodiscard]] std::string text() const {
        return number == 0 ? concat({"column ", shardwise::quoted(name)}) : concat({"column ", number});
    }
};

/// How files are written.
struct CsvFormat {
    char separator = ',';
    bool quotes = true;                              ///< RFC 4180's; false: a quote is a character like others
    bool header = true;                              ///< the first line of every file has the names of the columns
    std::vector<std::string> names = {};             ///< of the columns where there is no header; may be empty
    std::vector<std::string> missing_values = {{}};  ///< what is written where there is no value
    std::vector<CsvColumn> ignore = {};              ///< columns that nobody reads
    bool ignore_others = false;  ///< columns that are named nowhere are not read; false: they are errors

    /// \throws BadInput
    void validate() const {
        if (separator == '\n' || separator == '\r' || (separator == '"' && quotes))
            throw BadInput{
                concat({"a separator ", shardwise::quoted({&separator, 1}), ": give a comma, a tab or the like"})};
        if (header && !names.empty()) throw BadInput{"names of columns and a header line: give one of them"};
        if (ignore_others && !ignore.empty()) throw BadInput{"columns to ignore, and all others too: give one of them"};
    }
    /// Checks that there can be such a column. \throws BadInput
    void validate(const CsvColumn& column) const {
        if (column.number < 0 || (column.number == 0 && column.name.empty()))
            throw BadInput{"a column without a name: give a name, or a number from 1 on"};
        if (column.number == 0 && !header && names.empty())
            throw BadInput{concat({column.text(),
                                   " has a name, and files without a header line have none: give "
                                   "numbers of columns, or the names of all of them"})};
    }
};

/// Which samples are positive. Without more than a column its values are 0 and 1.
struct CsvLabel {
    CsvColumn column = {};
    std::vector<std::string> positive = {};  ///< these values are
    std::vector<std::string> negative = {};  ///< these are not; empty: all but the positive ones
    std::optional<double> at_least = {};     ///< numbers from here on are
};

/// The form of a column of times (see parse_time()), and what is taken of it. An empty form: the column has no times.
struct CsvTime {
    std::string form = {};
    TimePart part = TimePart::hour;
};

/// A column of numbers: a dense feature.
struct CsvDense {
    CsvColumn column = {};
    bool log1p = false;                   ///< log(1 + max(x, 0)) of it
    CsvTime time = {};                    ///< or a part of a time
    std::optional<float> missing = 0.0F;  ///< what a missing value becomes; none: it is an error
};

/// How a value becomes a row of its table.
enum class CsvIds : std::uint8_t {
    hash,   ///< XXH64 of its bytes, with the schema's seed, modulo the rows
    row,    ///< it is the number of the row
    modulo  ///< it is a whole number, and taken modulo the rows, rounded down
};
/// What becomes of a missing value.
enum class CsvMissing : std::uint8_t {
    usual,   ///< own_id where values are hashed, an empty bag where they are split, otherwise an error
    own_id,  ///< the row that the hash of no bytes is
    empty,   ///< an empty bag
    row,     ///< a row that is given
    error
};

/// A column of categories: a feature with ids.
struct CsvCategory {
    CsvColumn column = {};
    std::string name = {};   ///< of the feature; empty: that of the column, or "column3"
    std::string table = {};  ///< features of one table share its rows; empty: the feature has one of its own
    std::int64_t rows = 0;   ///< of the table; 0: as another feature of the table says, or the schema
    CsvIds ids = CsvIds::hash;
    char split = '\0';  ///< the value is a bag of values with this character between them; 0: it is one value
    CsvTime time = {};  ///< the id is a part of a time, whatever `ids` says
    CsvMissing missing = CsvMissing::usual;
    std::int64_t missing_row = 0;  ///< with CsvMissing::row

    [[nodiscard]] std::string feature() const {
        if (!name.empty()) return name;
        return column.number == 0 ? column.name : concat({"column", column.number});
    }
    [[nodiscard]] std::string table_name() const { return table.empty() ? feature() : table; }
    /// What becomes of a missing value, never `usual`.
    [[nodiscard]] CsvMissing when_missing() const noexcept {
        if (missing != CsvMissing::usual) return missing;
        if (split != '\0') return CsvMissing::empty;
        return ids == CsvIds::hash && time.form.empty() ? CsvMissing::own_id : CsvMissing::error;
    }
};

/// What files of click data are read as; see CsvReader. From a file by read_csv_schema().
struct CsvSchema {
    CsvFormat format = {};
    CsvLabel label = {};
    std::vector<CsvDense> dense = {};
    std::vector<CsvCategory> categorical = {};
    std::int64_t rows = 0;   ///< of tables of which no feature says it
    std::uint64_t seed = 0;  ///< of hashes

    /// The features in the order of their tables, which is that of batches: their places in `categorical`.
    [[nodiscard]] std::vector<std::size_t> order() const {
        std::vector<std::size_t> all;
        for (std::size_t f = 0; f != categorical.size(); ++f) {
            if (std::find(all.begin(), all.end(), f) != all.end()) continue;
            for (std::size_t other = f; other != categorical.size(); ++other)
                if (categorical[other].table_name() == categorical[f].table_name()) all.push_back(other);
        }
        return all;
    }
    /// Rows of a feature's table. \throws BadInput where nobody says, or two features say different numbers
    [[nodiscard]] std::int64_t rows_of(const CsvCategory& feature) const {
        const std::string table = feature.table_name();
        std::int64_t said = 0;
        std::int64_t of_times = 0;
        for (const CsvCategory& other : categorical) {
            if (other.table_name() != table) continue;
            if (other.rows != 0 && said != 0 && other.rows != said)
                throw BadInput{concat({"table ", shardwise::quoted(table), " has ", said, " rows and ", other.rows,
                                       ": say it once, or the same for all features of it"})};
            if (other.rows != 0) said = other.rows;
            if (!other.time.form.empty()) of_times = std::max(of_times, time_part_rows(other.time.part));
        }
        if (said == 0) said = of_times != 0 ? of_times : rows;
        if (said < 1)
            throw BadInput{concat(
                {"table ", shardwise::quoted(table), " has ", said, " rows: give at least 1 for it, or for all"})};
        return said;
    }
    /// The embedding tables, in the order in which their first features stand. \throws BadInput as validate()
    [[nodiscard]] std::vector<TableConfig> tables(int dim) const {
        std::vector<TableConfig> all;
        for (const std::size_t f : order()) {
            const CsvCategory& feature = categorical[f];
            if (all.empty() || all.back().name != feature.table_name())
                all.push_back({.name = feature.table_name(), .rows = rows_of(feature), .dim = dim});
            all.back().features.push_back(feature.feature());
        }
        return all;
    }
    /// Whether bags have other numbers of ids than one.
    [[nodiscard]] bool has_bags() const {
        return std::any_of(categorical.begin(), categorical.end(), [](const CsvCategory& feature) {
            return feature.split != '\0' || feature.when_missing() == CsvMissing::empty;
        });
    }
    /// All columns that are read: the label's, those of dense features, those of the others.
    [[nodiscard]] std::vector<CsvColumn> columns() const {
        std::vector<CsvColumn> all{label.column};
        for (const CsvDense& feature : dense)
            all.push_back(feature.column);
        for (const CsvCategory& feature : categorical)
            all.push_back(feature.column);
        return all;
    }

    /// \throws BadInput with a sentence that says what does not fit
    void validate() const {
        format.validate();
        const std::vector<CsvColumn> used = columns();
        for (const CsvColumn& column : used)
            format.validate(column);
        for (const CsvColumn& column : format.ignore) {
            format.validate(column);
            if (std::find(used.begin(), used.end(), column) != used.end())
                throw BadInput{concat({column.text(), " is to be ignored, and is read: leave one of the two out"})};
        }
        if (std::find(used.begin() + 1, used.end(), label.column) != used.end())
            throw BadInput{
                concat({label.column.text(), " is the label, and a feature too: a model would read the answer"})};
        validate_label();
        for (const CsvDense& feature : dense) {
            if (feature.time.form.empty()) continue;
            check_time_form(feature.time.form);
            if (feature.log1p)
                throw BadInput{
                    concat({feature.column.text(), " has times and log1p: a part of a time is taken as it is"})};
        }
        if (categorical.empty()) throw BadInput{"there is no categorical column: give at least one"};
        for (std::size_t f = 0; f != categorical.size(); ++f) {
            validate_category(categorical[f]);
            for (std::size_t other = 0; other != f; ++other)
                if (categorical[other].feature() == categorical[f].feature())
                    throw BadInput{concat({"two features are named ", shardwise::quoted(categorical[f].feature()),
                                           ": give one of them another name"})};
        }
    }

  private:
    void validate_label() const {
        if (!label.negative.empty() && label.positive.empty())
            throw BadInput{
                concat({label.column.text(), ", the label, has negative values alone: give the positive ones"})};
        if (!label.positive.empty() && label.at_least)
            throw BadInput{
                concat({label.column.text(), ", the label, has positive values and a threshold: give one of them"})};
        if (label.at_least && !std::isfinite(*label.at_least))
            throw BadInput{concat({label.column.text(), ", the label: its threshold is no finite number"})};
        for (const std::string& value : label.negative)
            if (std::find(label.positive.begin(), label.positive.end(), value) != label.positive.end())
                throw BadInput{concat(
                    {label.column.text(), ", the label: ", shardwise::quoted(value), " is positive and negative"})};
    }
    void validate_category(const CsvCategory& feature) const {
        const auto refuse = [&](const std::string& why) { throw BadInput{concat({feature.column.text(), why})}; };
        const std::int64_t count = rows_of(feature);
        if (!feature.time.form.empty()) {
            check_time_form(feature.time.form);
            if (feature.split != '\0') refuse(" has times and is split: it has one time");
            if (count < time_part_rows(feature.time.part))
                refuse(concat({": its part of a time takes ", time_part_rows(feature.time.part),
                               " rows, and its table has ", count}));
        }
        if (feature.split == '\n' || feature.split == '\r' ||
            (feature.split != '\0' && feature.split == format.separator))
            refuse(
                concat({" is split at ", shardwise::quoted({&feature.split, 1}), ", which ends a column or a line"}));
        if (feature.missing == CsvMissing::own_id && (feature.ids != CsvIds::hash || !feature.time.form.empty()))
            refuse(": a missing value has an id of its own where values are hashed; give a row, empty or error");
        if (feature.missing == CsvMissing::row && (feature.missing_row < 0 || feature.missing_row >= count))
            refuse(
                concat({": a missing value becomes row ", feature.missing_row, ", and the rows are 0 to ", count - 1}));
    }
};

/// What files of histories are read as; see read_histories(). From a file by read_csv_history_schema().
struct CsvHistorySchema {
    CsvFormat format = {};
    CsvColumn user = {};
    CsvColumn item = {};
    CsvColumn time_column = {};  ///< histories are in its order
    std::string time_form = {};  ///< see parse_time(); empty: there is no such column, and records are in order
    std::int64_t rows = 0;       ///< of the table of items; 0: as many as they take
    bool hash = false;           ///< an item is hashed, as CsvIds::hash; false: it is the number of its row
    std::uint64_t seed = 0;      ///< of hashes

    /// \throws BadInput with a sentence that says what does not fit
    void validate() const {
        format.validate();
        format.validate(user);
        format.validate(item);
        if (!time_form.empty()) {
            format.validate(time_column);
            check_time_form(time_form);
        }
        if (rows < 0 || (hash && rows == 0))
            throw BadInput{concat({"items in a table of ", rows, " rows: give at least 1",
                                   hash ? "" : ", or 0 for as many as they take"})};
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI
