// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "shardwise/checkpoint/safetensors.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// What safetensors files about tables have in common: metadata that say what the file is and list names, and tensors
/// `tables/<name>/<what>`.

namespace shardwise::inline SHARDWISE_ABI::detail {

/// A kind of file.
struct TableFile {
    const char* format;   ///< the metadata `format`
    const char* is;       ///< "access profile"
    const char* program;  ///< that writes one
};

[[nodiscard]] inline std::string table_tensor(const std::string& table, const char* what) {
    return concat({"tables/", table, "/", what});
}

[[nodiscard]] inline std::string names_text(const std::vector<std::string>& names) {
    return nlohmann::json(names).dump();
}

/// A list of names in a file's metadata. \throws BadInput when the file is none of this kind
[[nodiscard]] inline std::vector<std::string> names_in(const SafetensorsReader& file, const TableFile& kind,
                                                       const char* what) {
    const auto format = file.metadata().find("format");
    const auto found = file.metadata().find(what);
    if (format == file.metadata().end() || format->second != kind.format || found == file.metadata().end())
        throw BadInput{concat({file.path(), ": is no ", kind.is, ": its metadata has no format '", kind.format,
                               "' and ", what, "; ", kind.program, " --out writes one"})};
    const nlohmann::json names = nlohmann::json::parse(found->second, nullptr, false);
    const auto is_text = [](const nlohmann::json& name) { return name.is_string(); };
    if (!names.is_array() || !std::all_of(names.begin(), names.end(), is_text))
        throw BadInput{concat({file.path(), ": the metadata '", what, "' is no JSON list of names"})};
    auto list = names.get<std::vector<std::string>>();
    std::vector<std::string> sorted = list;
    std::sort(sorted.begin(), sorted.end());
    if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
        throw BadInput{concat({file.path(), ": the metadata '", what, "' has '", *twice, "' twice"})};
    return list;
}

}  // namespace shardwise::inline SHARDWISE_ABI::detail
