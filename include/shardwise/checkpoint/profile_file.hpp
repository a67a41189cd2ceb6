// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shardwise/checkpoint/safetensors.hpp"
#include "shardwise/checkpoint/table_names.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/planning/access_profile.hpp"

/// \file
/// An access profile in one safetensors file.
///
/// Tensors, all I64: `samples` (); of each table `tables/<name>/total` (3,), its rows, its look-ups and its error, and
/// of its rows that were seen, in ascending order, `tables/<name>/row`, `tables/<name>/lookups` and
/// `tables/<name>/samples`, each (seen,). The metadata `format` is "shardwise access profile 1", and `tables` a JSON
/// list of the names in the order of the profile.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

inline constexpr TableFile profile_file{"shardwise access profile 1", "access profile", "profile_rows"};

/// The columns of a table's rows, as tensors.
struct ProfileColumn {
    const char* name;
    std::int64_t RowAccess::*value;
};
inline constexpr std::array<ProfileColumn, 3> profile_columns = {
    {{"row", &RowAccess::row}, {"lookups", &RowAccess::lookups}, {"samples", &RowAccess::samples}}};

/// Rows that pass through memory at once.
inline constexpr std::int64_t profile_chunk = std::int64_t{1} << 16;

/// The rows of one table of a file.
[[nodiscard]] inline std::vector<RowAccess> read_rows(SafetensorsReader& file, const std::string& table) {
    const auto found = file.tensors().find(table_tensor(table, "row"));
    const std::int64_t count = found == file.tensors().end() ? 0 : found->second.elements();
    std::vector<RowAccess> rows;
    std::vector<std::int64_t> chunk;
    for (const ProfileColumn& column : profile_columns) {
        const TensorInfo& tensor = file.require(table_tensor(table, column.name), TensorType::i64, {count});
        rows.resize(static_cast<std::size_t>(count));
        for (std::int64_t first = 0; first < count; first += profile_chunk) {
            chunk.resize(static_cast<std::size_t>(std::min(profile_chunk, count - first)));
            file.read(tensor, first, std::span{chunk});
            for (std::size_t i = 0; i != chunk.size(); ++i)
                rows[static_cast<std::size_t>(first) + i].*column.value = chunk[i];
        }
    }
    return rows;
}

}  // namespace detail

/// Writes a profile. The file appears under its name once it is complete. Not collective.
/// \throws BadInput as validate(), and naming the file when it cannot be written
inline void write_profile(const std::string& path, const AccessProfile& profile) {
    validate(profile);
    SafetensorsWriter file{path};
    std::vector<std::string> names;
    file.declare("samples", TensorType::i64, {});
    for (const TableAccess& table : profile.tables) {
        names.push_back(table.name);
        file.declare(detail::table_tensor(table.name, "total"), TensorType::i64, {3});
        for (const detail::ProfileColumn& column : detail::profile_columns)
            file.declare(detail::table_tensor(table.name, column.name), TensorType::i64, {std::ssize(table.seen)});
    }
    file.metadata("format", detail::profile_file.format);
    file.metadata("tables", detail::names_text(names));
    file.begin();
    file.append(std::span{&profile.samples, 1});
    std::vector<std::int64_t> chunk;
    for (const TableAccess& table : profile.tables) {
        const std::array<std::int64_t, 3> total = {table.rows, table.lookups, table.error};
        file.append(std::span<const std::int64_t>{total});
        for (const detail::ProfileColumn& column : detail::profile_columns)
            for (std::span<const RowAccess> left{table.seen}; !left.empty();) {
                const auto part = left.first(std::min(left.size(), static_cast<std::size_t>(detail::profile_chunk)));
                chunk.clear();
                for (const RowAccess& row : part)
                    chunk.push_back(row.*column.value);
                file.append(std::span<const std::int64_t>{chunk});
                left = left.subspan(part.size());
            }
    }
    file.end();
}

/// Reads a profile, and checks all of it. Not collective. Memory: the profile. That its tables are those of a model is
/// require_tables()' to check.
/// \throws BadInput naming the file and what is wrong with it: damaged, no profile, rows that are none, that stand
/// twice or do not ascend, counts that do not add up
[[nodiscard]] inline AccessProfile read_profile(const std::string& path) {
    SafetensorsReader file{path};
    AccessProfile profile;
    const std::vector<std::string> names = detail::names_in(file, detail::profile_file, "tables");
    file.read(file.require("samples", TensorType::i64, {}), 0, std::span{&profile.samples, 1});
    for (const std::string& name : names) {
        std::array<std::int64_t, 3> total{};
        file.read(file.require(detail::table_tensor(name, "total"), TensorType::i64, {3}), 0,
                  std::span<std::int64_t>{total});
        profile.tables.push_back({.name = name,
                                  .rows = total[0],
                                  .lookups = total[1],
                                  .error = total[2],
                                  .seen = detail::read_rows(file, name)});
    }
    try {
        validate(profile);
    } catch (const BadInput& error) {
        throw BadInput{concat({path, ": ", error.what()})};
    }
    return profile;
}

}  // namespace shardwise::inline SHARDWISE_ABI
