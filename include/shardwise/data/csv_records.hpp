// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/data/lines.hpp"

/// \file
/// The records of CSV and TSV files, and the fields of a record.

namespace shardwise::inline SHARDWISE_ABI {

/// Hands out the records of files in order, in memory of one block and one record. A record is a line; with quotes, as
/// many lines as it takes for their number to be even, since a line break within quotes is part of a value. Empty lines
/// are passed over, and so is a byte order mark (UTF-8) at the beginning of a file. Not thread safe.
class CsvRecords {
  public:
    /// A record in the reader's memory, without its end; valid until the reader is used again. It may be written.
    struct Record {
        char* begin = nullptr;
        char* end = nullptr;
        bool quoted = false;  ///< there is a quote in it that counts
    };

    /// \param quotes  as RFC 4180 has them; false: they are characters like others \throws BadInput as LineReader
    CsvRecords(std::vector<std::string> files, bool quotes, std::size_t block_bytes)
        : lines_{std::move(files), block_bytes}, quotes_{quotes} {}

    /// The next record; false behind the last one.
    /// \throws BadInput as LineReader, and for a quote that is not closed in its file
    bool next(Record& record) {
        LineReader::Line line;
        do {
            if (!lines_.next(line)) return false;
            if (lines_.line() != 1) continue;
            first_of_file_ = true;
            if (std::string_view{line.begin, static_cast<std::size_t>(line.end - line.begin)}.starts_with(
                    "\xEF\xBB\xBF"))
                line.begin += 3;
        } while (line.begin == line.end);
        line_ = lines_.line();
        first_ = std::exchange(first_of_file_, false);
        const std::size_t count = quotes_ ? quotes_in(line) : 0;
        if (count % 2 != 0) join(line);
        record = {line.begin, line.end, count != 0};
        return true;
    }

    /// Back to the first record of the first file.
    void rewind() {
        lines_.rewind();
        first_ = first_of_file_ = false;
    }

    /// The file of the record handed out last.
    [[nodiscard]] const std::string& file() const noexcept { return lines_.file(); }
    /// The number of that record's first line in its file, from 1.
    [[nodiscard]] std::int64_t line() const noexcept { return line_; }
    /// Whether that record is the first one of its file.
    [[nodiscard]] bool first() const noexcept { return first_; }

  private:
    [[nodiscard]] static std::size_t quotes_in(const LineReader::Line& line) noexcept {
        std::size_t count = 0;
        for (const char* at = line.begin; at != line.end; ++at, ++count) {
            at = static_cast<const char*>(std::memchr(at, '"', static_cast<std::size_t>(line.end - at)));
            if (at == nullptr) break;
        }
        return count;
    }

    /// Appends the lines that follow, until all quotes are closed.
    void join(LineReader::Line& line) {
        const std::string file = lines_.file();
        const auto not_closed = [&](const std::string& where) {
            return BadInput{concat({file, ", line ", line_, ": a quote that is not closed ", where,
                                    R"(; if quotes mean nothing in it, say so in the schema ("quotes": false))"})};
        };
        text_.assign(line.begin, line.end);
        for (bool open = true; open;) {
            text_ += *line.end == '\r' ? "\r\n" : "\n";  // as there is a line behind it, or else this is an error
            if (!lines_.next(line) || lines_.line() == 1) throw not_closed("in this file");
            text_.append(line.begin, line.end);
            if (text_.size() > LineReader::longest_line)
                throw not_closed(concat({"within ", LineReader::longest_line, " bytes of this file"}));
            open ^= quotes_in(line) % 2 != 0;
        }
        line = {text_.data(), text_.data() + text_.size()};
    }

    LineReader lines_;
    bool quotes_;
    std::string text_;  // a record of several lines
    std::int64_t line_ = 0;
    bool first_of_file_ = false;  // no record of the file has been handed out
    bool first_ = false;
};

/// Takes a record apart, in place: doubled quotes become one.
/// \returns 0, or the number of the column (from 1) whose quotes are wrong: they neither begin and end the value nor
/// are doubled in it
inline std::size_t split_csv(const CsvRecords::Record& record, char separator, std::vector<std::string_view>& fields) {
    fields.clear();
    char* at = record.begin;
    const auto find = [&](char* from, char* to, char c) {
        return static_cast<char*>(std::memchr(from, c, static_cast<std::size_t>(to - from)));
    };
    for (;;) {
        if (record.quoted && at != record.end && *at == '"') {
            char* const begin = ++at;
            char* to = begin;
            for (;;) {
                char* const quote = find(at, record.end, '"');
                if (quote == nullptr) return fields.size() + 1;
                if (to != at) std::memmove(to, at, static_cast<std::size_t>(quote - at));
                to += quote - at;
                at = quote + 1;
                if (at == record.end || *at != '"') break;
                *to++ = *at++;
            }
            fields.emplace_back(begin, static_cast<std::size_t>(to - begin));
            if (at == record.end) return 0;
            if (*at != separator) return fields.size();
            ++at;
            continue;
        }
        char* stop = find(at, record.end, separator);
        const bool last = stop == nullptr;
        if (last) stop = record.end;
        fields.emplace_back(at, static_cast<std::size_t>(stop - at));
        if (record.quoted && find(at, stop, '"') != nullptr) return fields.size();
        if (last) return 0;
        at = stop + 1;
    }
}

}  // namespace shardwise::inline SHARDWISE_ABI
