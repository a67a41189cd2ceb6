// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/data/lines.hpp"
#include "shardwise/data/quoted.hpp"

/// \file
/// Lines that begin with whole numbers.

namespace shardwise::inline SHARDWISE_ABI {

/// Reads lines whose first columns are decimal whole numbers, not negative, with spaces or tabs between them. Files are
/// plain or gzip, one after the other. Not thread safe. Memory: that of a LineReader.
class NumberLines {
  public:
    /// \param columns  names of the columns, at least one
    /// \param more     lines may have more columns, which are passed over
    /// \throws BadInput as LineReader
    NumberLines(std::vector<std::string> files, std::vector<std::string> columns, bool more,
                std::size_t block_bytes = std::size_t{256} << 10)
        : lines_{std::move(files), block_bytes}, columns_{std::move(columns)}, more_{more} {}

    /// The next line's numbers. \param numbers  (columns) \returns false behind the last line
    /// \throws BadInput naming file, line, column and value, and as LineReader
    bool next(std::span<std::int64_t> numbers) {
        LineReader::Line line;
        if (!lines_.next(line)) return false;
        const char* at = line.begin;
        for (std::size_t c = 0; c != columns_.size(); ++c) {
            while (at != line.end && is_space(*at))
                ++at;
            if (at == line.end) fail_short(c);
            const auto [stop, status] = std::from_chars(at, static_cast<const char*>(line.end), numbers[c]);
            const bool ends = stop == line.end || is_space(*stop);
            if (status != std::errc{} || !ends || *at == '-')
                fail(c, quoted(value(at, line.end)) +
                            ", expected a whole number from 0 to 9223372036854775807 and a space, a tab or the line's "
                            "end behind it");
            at = stop;
        }
        while (at != line.end && is_space(*at))
            ++at;
        if (at != line.end && !more_) fail(columns_.size(), quoted(value(at, line.end)) + ", expected " + expected());
        return true;
    }
    /// Passes over at most `count` lines, without a look at them. \returns how many there were
    std::int64_t skip(std::int64_t count) { return lines_.skip(count); }
    /// Back to the first line of the first file.
    void rewind() { lines_.rewind(); }
    /// The file of the line that was read or passed over last.
    [[nodiscard]] const std::string& file() const noexcept { return lines_.file(); }

    /// Refuses a value of the line that was read last. \throws BadInput "file, line 3, column 2 (item): <what>"
    [[noreturn]] void fail(std::size_t column, const std::string& what) const {
        const std::string name = column < columns_.size() ? " (" + columns_[column] + ")" : "";
        throw BadInput{concat({lines_.file(), ", line ", lines_.line(), ", column ", column + 1, name, ": ", what})};
    }

  private:
    [[nodiscard]] static bool is_space(char c) noexcept { return c == ' ' || c == '\t'; }
    [[nodiscard]] static std::string_view value(const char* begin, const char* end) noexcept {
        const char* stop = begin;
        while (stop != end && !is_space(*stop))
            ++stop;
        return {begin, static_cast<std::size_t>(stop - begin)};
    }
    /// "2 columns: user item"
    [[nodiscard]] std::string expected() const {
        std::string text = concat({columns_.size(), (columns_.size() == 1 ? " column:" : " columns:")});
        for (const std::string& column : columns_)
            text += " " + column;
        return text + (more_ ? " and whatever follows" : "");
    }
    [[noreturn]] void fail_short(std::size_t columns) const {
        throw BadInput{concat({lines_.file(), ", line ", lines_.line(), ": ", columns,
                               (columns == 1 ? " column" : " columns"), ", expected ", expected()})};
    }

    LineReader lines_;
    std::vector<std::string> columns_;
    bool more_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
