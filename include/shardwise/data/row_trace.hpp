// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/jagged.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/data/number_lines.hpp"
#include "shardwise/data/slice.hpp"

/// \file
/// Batches of the rows that one table was looked up at, from files that list them.

namespace shardwise::inline SHARDWISE_ABI {

/// What the lines of a trace are.
enum class TraceForm : std::uint8_t {
    rows,      ///< a row number, and nothing else
    sequences  ///< `user item [more columns]`: the item is the row
};

/// What a RowTraceReader reads.
struct RowTraceOptions {
    std::vector<std::string> files = {};  ///< read one after the other; plain or gzip, by their content
    TraceForm form = TraceForm::rows;
    std::int64_t rows = 0;                             ///< of the table; 0: as many as it takes
    Slice slice = {};                                  ///< the batch size, and which rank's batches
    std::size_t block_bytes = std::size_t{256} << 10;  ///< bytes read at once
};

/// A source of batches of one feature with one id a sample: **a line is a look-up, and a sample of its own**, whoever
/// the user is. So L is 1, and batches of b samples are b consecutive look-ups.
///
/// Satisfies BatchSource<RowTraceReader, JaggedBatch<std::int64_t>>. Ranks share the files as Slice says; each reads
/// all of them, but parses only its own lines, and reports only errors in these. Not collective, not thread safe.
/// Memory: one block, one line, the batch.
class RowTraceReader {
  public:
    /// \throws BadInput when there is no file or one that cannot be read, rows is negative, or the slice is not valid
    explicit RowTraceReader(RowTraceOptions options)
        : form_{options.form},
          most_{options.rows == 0 ? std::numeric_limits<std::int64_t>::max() : options.rows},
          slice_{options.slice},
          lines_{std::move(options.files), columns(options.form), options.form == TraceForm::sequences,
                 options.block_bytes} {
        slice_.validate();
        if (options.rows < 0)
            throw BadInput{
                concat({"a table of ", options.rows, " rows: give at least 1, or 0 for as many as it takes"})};
    }

    /// Reads this rank's next batch; it may be empty. \returns false at the end, on every rank after as many batches
    /// \throws BadInput naming file, line, column and value. Afterwards next() throws the same until rewind()
    bool next(JaggedBatch<std::int64_t>& batch) {
        if (failure_) std::rethrow_exception(failure_);
        try {
            return read(batch);
        } catch (...) {
            failure_ = std::current_exception();
            throw;
        }
    }

    /// Back to the first line.
    void rewind() {
        lines_.rewind();
        failure_ = nullptr;
        pending_ = 0;
        any_ = false;
    }

    /// One more than the largest row handed out so far, over all passes; 0 before the first one.
    [[nodiscard]] std::int64_t rows_seen() const noexcept { return rows_seen_; }

  private:
    [[nodiscard]] static std::vector<std::string> columns(TraceForm form) {
        return form == TraceForm::rows ? std::vector<std::string>{"row"} : std::vector<std::string>{"user", "item"};
    }

    bool read(JaggedBatch<std::int64_t>& batch) {
        lines_.skip(pending_);
        pending_ = slice_.after();
        const std::int64_t before = lines_.skip(slice_.before());
        const std::size_t column = form_ == TraceForm::rows ? 0 : 1;
        batch.features = 1;
        batch.values.clear();
        batch.lengths.clear();
        batch.weights.clear();
        std::array<std::int64_t, 2> numbers{};
        while (std::ssize(batch.values) < slice_.batch && lines_.next(std::span{numbers}.first(column + 1))) {
            const std::int64_t row = numbers[column];
            if (row >= most_)
                lines_.fail(column, concat({row, " is no row of the table: its rows are 0 to ", most_ - 1}));
            batch.values.push_back(row);
            rows_seen_ = std::max(rows_seen_, row + 1);
        }
        batch.samples = std::ssize(batch.values);
        const bool found = before + batch.samples != 0;
        if (!found && !any_) throw BadInput{concat({lines_.file(), ": no look-ups: every file is empty"})};
        any_ = true;
        return found;
    }

    TraceForm form_;
    std::int64_t most_;  // rows are below
    Slice slice_;
    NumberLines lines_;
    std::int64_t rows_seen_ = 0;
    std::int64_t pending_ = 0;  // lines of higher ranks that are not skipped yet
    bool any_ = false;          // there was a line
    std::exception_ptr failure_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
