// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include <nlohmann/json.hpp>

#include "shardwise/checkpoint/checksum.hpp"
#include "shardwise/checkpoint/durable_file.hpp"
#include "shardwise/checkpoint/part_file.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// What makes parts a checkpoint: a JSON file that names them with their sizes and checksums. Where it is, they are
/// whole; where it is not, they are none.

namespace shardwise::inline SHARDWISE_ABI {

/// A table of a sharded checkpoint.
struct ManifestTable {
    std::int64_t rows = 0;
    int dim = 0;
    friend bool operator==(const ManifestTable&, const ManifestTable&) = default;
};

/// A sharded checkpoint, without its data.
struct Manifest {
    std::int64_t steps = 0;
    std::string optimizer;
    int element_slots = 0;
    int row_slots = 0;
    std::map<std::string, ManifestTable> tables;
    std::vector<PartInfo> parts;  ///< that of rank 0 first
};

/// The manifests of a folder, by their steps. Not collective. \throws BadInput for a folder that cannot be read
[[nodiscard]] inline std::map<std::int64_t, std::string> manifests_in(const std::string& folder);
/// Reads one. Not collective. \throws BadInput naming the file, also for one that is damaged
[[nodiscard]] inline Manifest read_manifest(const std::string& path);
/// The same of its text. \param path  in errors
[[nodiscard]] inline Manifest parse_manifest(const std::string& path, const std::string& text);

namespace detail {

inline constexpr const char* manifest_format = "shardwise parts 1";

/// "step-000000000012"
[[nodiscard]] inline std::string step_name(std::int64_t steps) {
    const std::string digits = std::to_string(steps);
    return "step-" + std::string(digits.size() < 12 ? 12 - digits.size() : 0, '0') + digits;
}

/// The steps in a name like that, which ends with `behind`; nothing for other names.
[[nodiscard]] inline std::optional<std::int64_t> steps_in(const std::string& name, const std::string& behind) {
    const std::string front = "step-";
    if (!name.starts_with(front) || !name.ends_with(behind) || name.size() <= front.size() + behind.size()) return {};
    const std::string digits = name.substr(front.size(), name.size() - front.size() - behind.size());
    if (digits.size() > 18 || digits.find_first_not_of("0123456789") != std::string::npos) return {};
    return std::stoll(digits);
}

[[nodiscard]] inline nlohmann::json to_json(const PartInfo& part) {
    nlohmann::json shards = nlohmann::json::array();
    for (const PartShard& shard : part.shards)
        shards.push_back({{"table", shard.table},
                          {"first_column", shard.first_column},
                          {"columns", shard.columns},
                          {"rows", shard.rows},
                          {"first", shard.first},
                          {"stride", shard.stride}});
    return {{"file", part.file},
            {"bytes", part.bytes},
            {"header", part.header},
            {"tensors", part.checksums},
            {"shards", shards}};
}
[[nodiscard]] inline PartInfo part_of(const nlohmann::json& json) {
    PartInfo part;
    json.at("file").get_to(part.file);
    json.at("bytes").get_to(part.bytes);
    json.at("header").get_to(part.header);
    json.at("tensors").get_to(part.checksums);
    for (const nlohmann::json& from : json.at("shards")) {
        PartShard& shard = part.shards.emplace_back();
        from.at("table").get_to(shard.table);
        from.at("first_column").get_to(shard.first_column);
        from.at("columns").get_to(shard.columns);
        from.at("rows").get_to(shard.rows);
        from.at("first").get_to(shard.first);
        from.at("stride").get_to(shard.stride);
    }
    return part;
}

[[nodiscard]] inline std::string checksum_of(const std::string& text) {
    return Checksum{}.add(std::as_bytes(std::span{text})).text();
}

/// Puts a manifest in place of an older one of that name. Not collective. \throws BadInput naming the file
inline void write_manifest(const std::string& path, const Manifest& manifest) {
    nlohmann::json tables = nlohmann::json::object();
    for (const auto& [name, table] : manifest.tables)
        tables[name] = {{"rows", table.rows}, {"dim", table.dim}};
    nlohmann::json parts = nlohmann::json::array();
    for (const PartInfo& part : manifest.parts)
        parts.push_back(to_json(part));
    const nlohmann::json checkpoint = {{"format", manifest_format},
                                       {"steps", manifest.steps},
                                       {"optimizer", manifest.optimizer},
                                       {"element_slots", manifest.element_slots},
                                       {"row_slots", manifest.row_slots},
                                       {"tables", tables},
                                       {"parts", parts}};
    const nlohmann::json all = {{"checkpoint", checkpoint}, {"checksum", checksum_of(checkpoint.dump())}};
    const std::string text = all.dump(1) + "\n";
    DurableFile file{path + ".partial"};
    file.write(std::as_bytes(std::span{text}));
    file.complete_as(path);
}

}  // namespace detail

/// All of a file. \throws BadInput naming it
[[nodiscard]] inline std::string text_of(const std::string& path) {
    std::error_code wrong;
    const auto size = std::filesystem::file_size(path, wrong);
    std::ifstream file{path, std::ios::binary};
    std::string text(wrong ? 0 : static_cast<std::size_t>(size), '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (wrong || !file)
        throw BadInput{concat({path, ": cannot be read: ", wrong ? wrong.message() : std::strerror(errno)})};
    return text;
}

inline std::map<std::int64_t, std::string> manifests_in(const std::string& folder) {
    std::map<std::int64_t, std::string> all;
    std::error_code wrong;
    std::filesystem::directory_iterator files{folder, wrong};
    for (; !wrong && files != std::filesystem::directory_iterator{}; files.increment(wrong))
        if (const auto steps = detail::steps_in(files->path().filename().string(), ".json"))
            all[*steps] = files->path().string();
    if (wrong) throw BadInput{concat({folder, ": cannot be read: ", wrong.message()})};
    return all;
}

inline Manifest read_manifest(const std::string& path) {
    return parse_manifest(path, text_of(path));
}

inline Manifest parse_manifest(const std::string& path, const std::string& text) {
    Manifest manifest;
    try {
        const nlohmann::json all = nlohmann::json::parse(text);
        const nlohmann::json& checkpoint = all.at("checkpoint");
        if (all.at("checksum").get<std::string>() != detail::checksum_of(checkpoint.dump()))
            throw BadInput{concat({path, ": has another checksum than it says: the manifest is damaged"})};
        if (checkpoint.at("format") != detail::manifest_format)
            throw BadInput{concat({path, ": is of another format than '", detail::manifest_format, "'"})};
        checkpoint.at("steps").get_to(manifest.steps);
        checkpoint.at("optimizer").get_to(manifest.optimizer);
        checkpoint.at("element_slots").get_to(manifest.element_slots);
        checkpoint.at("row_slots").get_to(manifest.row_slots);
        for (const auto& [name, table] : checkpoint.at("tables").items())
            manifest.tables[name] = {table.at("rows").get<std::int64_t>(), table.at("dim").get<int>()};
        for (const nlohmann::json& part : checkpoint.at("parts"))
            manifest.parts.push_back(detail::part_of(part));
    } catch (const nlohmann::json::exception&) {
        throw BadInput{concat({path, ": is no manifest of a checkpoint, or a damaged one"})};
    }
    if (manifest.parts.empty()) throw BadInput{concat({path, ": is a manifest without parts"})};
    return manifest;
}

}  // namespace shardwise::inline SHARDWISE_ABI
