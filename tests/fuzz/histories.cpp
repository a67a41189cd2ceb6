// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// read_histories and RowTraceReader over a file of any bytes, with blocks of any size, against lines taken apart one
/// character after the other: the same numbers, or an error that names the first line that is wrong.

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "fuzz/memory_file.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/data/row_trace.hpp"
#include "shardwise/data/sequences.hpp"

namespace {

using fuzz::require;
namespace sw = shardwise;

/// The lines of a text; each ends with LF, CR LF or the text.
std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> lines;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string line{text.substr(0, end)};
        if (line.ends_with('\r')) line.pop_back();
        lines.push_back(line);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
}

/// A number below 2^63 of digits alone.
std::optional<std::int64_t> number(const std::string& word) {
    unsigned __int128 value = 0;
    for (const char c : word) {
        if (c < '0' || c > '9') return std::nullopt;
        value = value * 10 + static_cast<unsigned>(c - '0');
        if (value >> 63 != 0) return std::nullopt;
    }
    return static_cast<std::int64_t>(value);
}

std::vector<std::string> words_of(const std::string& line) {
    std::vector<std::string> words(1);
    for (const char c : line) {
        if (c == ' ' || c == '\t') {
            if (!words.back().empty()) words.emplace_back();
        } else {
            words.back() += c;
        }
    }
    if (words.back().empty()) words.pop_back();
    return words;
}

/// What stands in a line, or nothing where that is wrong.
std::optional<std::pair<std::int64_t, std::int64_t>> naive(const std::string& line, std::int64_t most) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() < 2) return std::nullopt;
    const auto user = number(words[0]);
    const auto item = number(words[1]);
    if (!user || !item || *item >= most) return std::nullopt;
    return std::pair{*user, *item};
}

/// The error of `read`, or nothing.
template <class Read>
std::string error_of(Read read) {
    try {
        read();
    } catch (const sw::BadInput& error) {
        return error.what();
    }
    return {};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    fuzz::Choices choices{bytes, size};
    fuzz::MemoryFile& file = fuzz::memory_files[0];
    const std::size_t block = 1 + choices.below(40);
    file.most = 1 + choices.below(64);
    const std::int64_t rows = choices.below(2) == 0 ? 0 : 1 + static_cast<std::int64_t>(choices.below(64));
    file.content = choices.text();
    if (file.content.starts_with("\x1f\x8b")) return 0;  // fuzz_gzip's
    const std::string path = fuzz::MemoryFile::path(0);
    const std::int64_t most = rows == 0 ? std::numeric_limits<std::int64_t>::max() : rows;

    std::vector<std::pair<std::int64_t, std::int64_t>> expected;
    const std::vector<std::string> lines = lines_of(file.content);
    std::size_t wrong = 0;
    for (; wrong != lines.size(); ++wrong) {
        const auto line = naive(lines[wrong], most);
        if (!line) break;
        expected.push_back(*line);
    }
    const bool good = wrong == lines.size() && !lines.empty();
    const std::string where = lines.empty() ? path + ": " : path + ", line " + std::to_string(wrong + 1);
    const auto is_expected = [&](const std::string& error) {
        if (good) return error.empty();
        return error.starts_with(where) && (error[where.size()] == ',' || error[where.size()] == ':' || lines.empty());
    };

    sw::Histories all;
    const std::string error =
        error_of([&] { all = sw::read_histories({.files = {path}, .rows = rows, .block_bytes = block}); });
    require(is_expected(error), "another error:", error);
    std::vector<std::int64_t> items;
    const std::string again = error_of([&] {
        sw::RowTraceReader reader{{.files = {path},
                                   .form = sw::TraceForm::sequences,
                                   .rows = rows,
                                   .slice = {.batch = 3},
                                   .block_bytes = block}};
        for (sw::JaggedBatch<std::int64_t> batch; reader.next(batch);)
            items.insert(items.end(), batch.values.begin(), batch.values.end());
    });
    require(is_expected(again), "another error of the trace:", again);
    if (!good) return 0;
    std::map<std::int64_t, std::vector<std::int64_t>> users;
    std::int64_t largest = -1;
    for (std::size_t i = 0; i != expected.size(); ++i) {
        users[expected[i].first].push_back(expected[i].second);
        largest = std::max(largest, expected[i].second);
        require(i < items.size() && items[i] == expected[i].second, "another item of the trace");
    }
    require(items.size() == expected.size(), "another number of items");
    require(all.rows == (rows == 0 ? largest + 1 : rows), "another number of rows");
    require(all.size() == std::ssize(users), "another number of users");
    for (std::int64_t user = 0; user != all.size(); ++user) {
        const auto history = all.of(user);
        require(users.at(all.users[static_cast<std::size_t>(user)]) ==
                    std::vector<std::int64_t>(history.begin(), history.end()),
                "another history");
    }
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
    fuzz::Random random{seed};
    if (!random.one_in(3)) return LLVMFuzzerMutate(data, size, most);
    std::string text(4, '\0');
    for (char& choice : text)
        choice = static_cast<char>(random.below(256));
    constexpr std::string_view spaces[] = {" ", "\t", "  ", " \t "};
    constexpr std::string_view ends[] = {"\n", "\n", "\n", "\r\n", " 5\n", "\tx y\n", " \n", "\n\n", "\r", ""};
    constexpr std::string_view numbers[] = {"0",  "7",  "00", "9223372036854775807", "9223372036854775808", "-1",
                                            "+1", "1.", "x",  "18446744073709551617"};
    for (std::size_t left = random.below(8); left != 0; --left) {
        for (int column = 0; column != 2; ++column) {
            if (random.one_in(12)) {
                text += random.one_of(numbers);
            } else {
                text += std::to_string(random.below(60));
            }
            if (column == 0) text += random.one_of(spaces);
        }
        text += random.one_of(ends);
    }
    if (random.one_in(3)) fuzz::mutate(text);
    return fuzz::become(text, data, most);
}
