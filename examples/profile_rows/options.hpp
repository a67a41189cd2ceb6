// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// \file
/// What the command line says.

namespace profile_rows {

/// What the files are.
enum class Form : std::uint8_t { clicks, trace, sequences };

/// Everything that a run depends on.
struct Options {
    Form form = Form::clicks;
    std::vector<std::string> files;
    std::vector<std::int64_t> rows;     ///< of each table, or one number for all; none: as many as it takes
    std::vector<std::int64_t> hottest;  ///< numbers of rows whose coverage is asked for
    std::optional<std::int64_t> split;  ///< samples before; the rest comes after
    std::vector<std::int64_t> caches;   ///< numbers of cached rows whose use is asked for
    std::int64_t counters = 0;          ///< rows counted at once, of each table; 0: all
    int ranks = 1;
    std::string out;
    std::string svg;
    std::string json;
};

/// \returns nothing when the command line asked for help; `text` is the help then \throws BadInput with one sentence
[[nodiscard]] std::optional<Options> parse_options(int argc, const char* const* argv, std::string& text);

/// "data", "trace" or "sequences", the option that names the files.
[[nodiscard]] const char* name_of(Form form);

}  // namespace profile_rows
