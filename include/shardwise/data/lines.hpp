// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/data/input_file.hpp"

/// \file
/// The lines of several files, one file after the other.

namespace shardwise::inline SHARDWISE_ABI {

/// Hands out or skips the lines of files in order, in memory of one block and one line. A line ends with LF, CR LF or
/// its file. Files are plain or gzip (InputFile). Not thread safe.
class LineReader {
  public:
    /// Bytes that can be read behind a line's end.
    static constexpr std::size_t slack = 16;
    /// A longer line is an error: the file is no text.
    static constexpr std::size_t longest_line = std::size_t{1} << 20;

    /// A line in the reader's memory, without its end; valid until the reader is used again. The bytes from `end` to
    /// `end + slack` can be read, and `*end` written.
    struct Line {
        char* begin = nullptr;
        char* end = nullptr;
    };

    /// \param files at least one \param block_bytes bytes read at once, at least 1
    /// \throws BadInput when there is no file, or one that cannot be read
    explicit LineReader(std::vector<std::string> files, std::size_t block_bytes = std::size_t{256} << 10)
        : files_{std::move(files)}, block_bytes_{block_bytes} {
        if (files_.empty()) throw BadInput{"no file to read: give at least one"};
        if (block_bytes_ == 0) throw BadInput{"a block of 0 bytes: give at least 1"};
        for (const auto& file : files_)
            require_readable(file);
        memory_.resize(block_bytes_ + slack);
    }

    /// The next line; false behind the last line of the last file. \throws BadInput as InputFile, and for a line that
    /// is too long
    bool next(Line& line) {
        const std::size_t start = find_line();
        if (start == none) return false;
        line = {memory_.data() + start, memory_.data() + line_end_};
        if (line.end != line.begin && line.end[-1] == '\r') --line.end;
        return true;
    }

    /// Passes over at most `count` lines. \returns how many there were \throws BadInput as next()
    /// Cost: the bytes are searched for ends of lines, nothing else.
    std::int64_t skip(std::int64_t count) {
        std::int64_t skipped = 0;
        while (skipped < count && find_line() != none)
            ++skipped;
        return skipped;
    }

    /// Back to the first line of the first file.
    void rewind() {
        input_.reset();
        file_ = 0;
        line_ = 0;
        position_ = filled_ = 0;
    }

    /// The file of the line handed out or skipped last.
    [[nodiscard]] const std::string& file() const noexcept { return files_[std::min(file_, files_.size() - 1)]; }
    /// The number of that line in its file, from 1.
    [[nodiscard]] std::int64_t line() const noexcept { return line_; }

  private:
    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    // Moves behind the next line; returns where it starts and sets line_end_.
    std::size_t find_line() {
        while (file_ != files_.size()) {
            if (position_ != filled_) {
                const char* start = memory_.data() + position_;
                if (const void* end = std::memchr(start, '\n', filled_ - position_))
                    return take(static_cast<std::size_t>(static_cast<const char*>(end) - memory_.data()), 1);
            }
            if (fill()) continue;
            if (position_ != filled_) return take(filled_, 0);
            input_.reset();
            ++file_;
        }
        return none;
    }

    std::size_t take(std::size_t end, std::size_t terminator) {
        line_end_ = end;
        ++line_;
        return std::exchange(position_, end + terminator);
    }

    // Reads one block behind what is left of the last one; false at the end of the file.
    bool fill() {
        if (!input_) {
            input_ = std::make_unique<InputFile>(files_[file_]);
            line_ = 0;
        }
        const std::size_t left = filled_ - position_;
        if (left > longest_line)
            throw BadInput{concat({file(), ", line ", line_ + 1, ": a line of more than ", longest_line,
                                   " bytes: this is no text file"})};
        if (left != 0) std::memmove(memory_.data(), memory_.data() + position_, left);
        position_ = 0;
        filled_ = left;
        if (memory_.size() < left + block_bytes_ + slack) memory_.resize(2 * (left + block_bytes_) + slack);
        filled_ += input_->read(memory_.data() + left, block_bytes_, line_ + 1);
        return filled_ != left;
    }

    std::vector<std::string> files_;
    std::size_t block_bytes_;
    std::vector<char> memory_;
    std::unique_ptr<InputFile> input_;
    std::size_t file_ = 0;  // index into files_; past the end when all are read
    std::int64_t line_ = 0;
    std::size_t position_ = 0;  // first byte that belongs to no line yet
    std::size_t filled_ = 0;
    std::size_t line_end_ = 0;
};

}  // namespace shardwise::inline SHARDWISE_ABI
