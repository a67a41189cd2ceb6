// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/sharding/towers.hpp"

/// \file
/// Towers in a file: {"towers": [["C1", "C4"], ["C2"], ...]}; whatever else the object holds is for other readers.

namespace shardwise::inline SHARDWISE_ABI {

/// The towers that a JSON file names. Not collective. That the features are those of a layer is the layer's to check.
/// \throws BadInput that names the file and what is wrong with it
[[nodiscard]] inline Towers read_towers(const std::string& path) {
    std::ifstream file{path};
    if (!file) throw BadInput{concat({path, ": cannot be read"})};
    const nlohmann::json all = nlohmann::json::parse(file, nullptr, false);
    if (all.is_discarded())
        throw BadInput{concat({path, ": is no JSON; a tower file is {\"towers\": [[\"C1\", \"C4\"], ...]}"})};
    if (!all.is_object() || !all.contains("towers") || !all["towers"].is_array() || all["towers"].empty())
        throw BadInput{concat({path, ": has no list 'towers'; a tower file is {\"towers\": [[\"C1\", \"C4\"], ...]}"})};
    Towers towers;
    const auto wrong = [&](const char* verb, const nlohmann::json& value, const char* remedy) {
        return BadInput{path + ": tower " + std::to_string(towers.size() - 1) + verb + value.dump() + remedy};
    };
    for (const nlohmann::json& tower : all["towers"]) {
        auto& features = towers.emplace_back();
        if (!tower.is_array()) throw wrong(" is ", tower, ": give the names of its features");
        for (const nlohmann::json& feature : tower) {
            if (!feature.is_string())
                throw wrong(" has ", feature, ", which is no name of a feature: give it in quotes");
            features.push_back(feature.get<std::string>());
        }
    }
    return towers;
}

/// Writes `towers`, and `more` beside them, an object. \throws BadInput when the file cannot be written
inline void write_towers(const std::string& path, const Towers& towers,
                         nlohmann::json more = nlohmann::json::object()) {
    more["towers"] = towers;
    std::ofstream file{path};
    file << more.dump(1) << "\n";
    if (!file.flush()) throw BadInput{concat({path, ": cannot be written"})};
}

}  // namespace shardwise::inline SHARDWISE_ABI
