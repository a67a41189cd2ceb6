// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/data/csv_records.hpp"
#include "shardwise/data/csv_schema.hpp"
#include "shardwise/data/quoted.hpp"

/// \file
/// Some of the columns of CSV and TSV files, record by record.

namespace shardwise::inline SHARDWISE_ABI {

/// Reads the columns that it is asked for, in whichever order files have them, and checks that every record has as many
/// columns as the header line, the names that are given, or else the first record. Files are plain or gzip. Not thread
/// safe.
class CsvFields {
  public:
    /// \param columns  that are read; one may be asked for several times
    /// \throws BadInput for a format or columns that make no sense, and as LineReader
    CsvFields(std::vector<std::string> files, CsvFormat format, std::vector<CsvColumn> columns, std::size_t block_bytes)
        : format_{std::move(format)},
          columns_{std::move(columns)},
          records_{std::move(files), format_.quotes, block_bytes},
          places_(columns_.size()) {
        format_.validate();
        for (const CsvColumn& column : columns_)
            format_.validate(column);
        if (!format_.names.empty()) find_columns(format_.names, "the names of the columns");
    }

    /// Reads the next record, behind headers; false behind the last one.
    /// \throws BadInput naming file and line, for a header that does not fit, for another number of columns, and for
    /// quotes that are wrong
    bool next() {
        CsvRecords::Record record;
        if (!advance(record)) return false;
        split(record);
        if (fields_.size() != width_)
            refuse(concat({count(fields_.size()), " separated by ", shardwise::quoted({&format_.separator, 1}),
                           ", expected ", width_}));
        return true;
    }
    /// Passes over at most `count` records, without a look at their columns. \returns how many there were
    /// \throws BadInput for a header that does not fit, and as CsvRecords
    std::int64_t skip(std::int64_t count) {
        std::int64_t skipped = 0;
        for (CsvRecords::Record record; skipped < count && advance(record);)
            ++skipped;
        return skipped;
    }
    /// Back to the first record of the first file.
    void rewind() {
        records_.rewind();
        if (format_.names.empty()) width_ = 0;
    }

    /// The text of the column that was asked for as number `column`, in the record that was read last.
    [[nodiscard]] std::string_view operator[](std::size_t column) const noexcept { return fields_[places_[column]]; }
    [[nodiscard]] bool is_missing(std::string_view value) const noexcept {
        return std::find(format_.missing_values.begin(), format_.missing_values.end(), value) !=
               format_.missing_values.end();
    }
    [[nodiscard]] const std::string& file() const noexcept { return records_.file(); }

    /// Refuses a value of the record that was read last. \param column  as operator[]
    /// \throws BadInput "file, line 3: column 2 (item): 'x', <expected>"
    [[noreturn]] void fail(std::size_t column, std::string_view value, const std::string& expected) const {
        const std::size_t place = places_[column];
        std::int64_t line = records_.line();
        for (std::size_t i = 0; i != place; ++i)
            line += std::count(fields_[i].begin(), fields_[i].end(), '\n');
        throw BadInput{concat(
            {records_.file(), ", line ", line, ": ", name_of(place), ": ", shardwise::quoted(value), ", ", expected})};
    }

  private:
    [[nodiscard]] static std::string count(std::size_t columns) {
        return concat({columns, columns == 1 ? " column" : " columns"});
    }
    [[nodiscard]] std::string name_of(std::size_t place) const {
        return place < names_.size() ? concat({"column ", place + 1, " (", names_[place], ")"})
                                     : concat({"column ", place + 1});
    }
    [[noreturn]] void refuse(const std::string& why) const {
        throw BadInput{concat({records_.file(), ", line ", records_.line(), ": ", why})};
    }

    void split(const CsvRecords::Record& record) {
        const std::size_t wrong = split_csv(record, format_.separator, fields_);
        if (wrong != 0)
            refuse(
                concat({name_of(wrong - 1),
                        ": a quote that neither begins nor ends the value and is not doubled; if quotes mean nothing "
                        "in this file, say so in the schema (\"quotes\": false)"}));
    }

    /// To the next record that is no header.
    bool advance(CsvRecords::Record& record) {
        while (records_.next(record)) {
            if (format_.header && records_.first()) {
                read_header(record);
                continue;
            }
            if (width_ == 0) measure(record);
            return true;
        }
        return false;
    }
    void read_header(const CsvRecords::Record& record) {
        names_.clear();
        split(record);
        find_columns({fields_.begin(), fields_.end()}, "");
    }
    /// Without a header and names: the first record says how many columns there are. It is read once more.
    void measure(const CsvRecords::Record& record) {
        std::string copy{record.begin, record.end};
        split({copy.data(), copy.data() + copy.size(), record.quoted});
        width_ = fields_.size();
        try {
            place_columns();
        } catch (const BadInput& error) {
            refuse(error.what());
        }
    }

    /// \param whose  they are; empty: the header's of the file that is read
    void find_columns(std::vector<std::string> names, const char* whose) {
        names_ = std::move(names);
        width_ = names_.size();
        try {
            place_columns();
        } catch (const BadInput& error) {
            if (*whose != '\0') throw BadInput{concat({whose, ": ", error.what()})};
            refuse(error.what());
        }
    }
    /// Where the columns stand that are read; that all others are to be ignored. \throws BadInput
    void place_columns() {
        std::vector<bool> known(width_);
        for (std::size_t c = 0; c != columns_.size(); ++c)
            known[places_[c] = place_of(columns_[c])] = true;
        for (const CsvColumn& column : format_.ignore)
            known[place_of(column)] = true;
        const auto other = static_cast<std::size_t>(std::find(known.begin(), known.end(), false) - known.begin());
        if (other != width_ && !format_.ignore_others)
            throw BadInput{concat({name_of(other),
                                   " is in the file and not in the schema; give it a meaning there, or "
                                   "ignore it (\"ignore\": [...], or \"ignore\": \"others\")"})};
    }
    [[nodiscard]] std::size_t place_of(const CsvColumn& column) const {
        if (column.number != 0) {
            const auto number = static_cast<std::size_t>(column.number);
            if (number > width_) throw BadInput{concat({"there is no ", column.text(), ", there are ", count(width_)})};
            return number - 1;
        }
        const auto found = std::find(names_.begin(), names_.end(), column.name);
        if (found == names_.end()) {
            std::string all;
            for (const std::string& name : names_)
                all += (all.empty() ? "" : " ") + shardwise::quoted(name);
            throw BadInput{concat({"there is no ", column.text(), "; the columns are ", all})};
        }
        if (std::find(found + 1, names_.end(), column.name) != names_.end())
            throw BadInput{
                concat({"there are two columns ", shardwise::quoted(column.name), ": give the number of one of them"})};
        return static_cast<std::size_t>(found - names_.begin());
    }

    CsvFormat format_;
    std::vector<CsvColumn> columns_;
    CsvRecords records_;
    std::vector<std::size_t> places_;  // of columns_
    std::vector<std::string> names_;   // of all columns of the file; may be empty
    std::size_t width_ = 0;            // columns of every record; 0: not known yet
    std::vector<std::string_view> fields_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
