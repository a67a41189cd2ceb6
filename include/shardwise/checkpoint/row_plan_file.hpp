// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shardwise/checkpoint/safetensors.hpp"
#include "shardwise/checkpoint/table_names.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/sharding/row_plan.hpp"

/// \file
/// A row plan in one safetensors file.
///
/// Tensors, all I64, of each table: `tables/<name>/tiers` (tiers,), the rows of each; `tables/<name>/replicated` (rows
/// of all tiers but the last,), tier by tier, or (0,) where they are the first of the table; `tables/<name>/unseen`
/// (ceil(rows / 64),), a bit a row, the lowest first, or (0,) where there is none; and, where they are known,
/// `tables/<name>/lookups` (tiers,), those of each tier in the profile, `tables/<name>/touches` (tiers, 3), the rows of
/// each that a step is expected to touch on a rank, a host and in the world, and `tables/<name>/reduction` (1,), 0 for
/// touched and 1 for dense.
/// The metadata `format` is "shardwise row plan 1", `tiers` and `tables` JSON lists of names.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

inline constexpr TableFile row_plan_file{"shardwise row plan 1", "row plan", "plan_rows"};

/// Numbers in a shape.
[[nodiscard]] inline std::vector<std::int64_t> row_plan_numbers(SafetensorsReader& file, const std::string& name,
                                                                const std::vector<std::int64_t>& shape) {
    const TensorInfo& tensor = file.require(name, TensorType::i64, shape);
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(tensor.elements()));
    file.read(tensor, 0, std::span{numbers});
    return numbers;
}
/// A list of numbers, as many as there are.
[[nodiscard]] inline std::vector<std::int64_t> row_plan_numbers(SafetensorsReader& file, const std::string& name) {
    const auto found = file.tensors().find(name);
    return row_plan_numbers(file, name, {found == file.tensors().end() ? 0 : found->second.elements()});
}
[[nodiscard]] inline std::vector<std::int64_t> bits_of(const std::vector<bool>& rows) {
    std::vector<std::uint64_t> words((rows.size() + 63) / 64);
    for (std::size_t row = 0; row < rows.size(); ++row)
        words[row / 64] |= std::uint64_t{rows[row]} << row % 64;
    return {words.begin(), words.end()};
}

[[nodiscard]] inline std::vector<std::int64_t> numbers_of(const std::vector<RowTouches>& tiers) {
    std::vector<std::int64_t> numbers;
    for (const RowTouches& tier : tiers)
        numbers.insert(numbers.end(), {tier.rank, tier.host, tier.world});
    return numbers;
}
[[nodiscard]] inline std::vector<std::int64_t> number_of(const std::optional<RowReduction>& reduction) {
    if (!reduction.has_value()) return {};
    return {*reduction == RowReduction::dense ? 1 : 0};
}

}  // namespace detail

/// Writes a row plan. The file appears under its name once it is complete. Not collective.
/// \throws BadInput as check(), and naming the file when it cannot be written
inline void write_row_plan(const std::string& path, const RowPlan& plan) {
    check(plan);
    SafetensorsWriter file{path};
    std::vector<std::string> names;
    for (const TableRowPlan& table : plan.tables) {
        names.push_back(table.table);
        const auto declare = [&](const char* what, std::int64_t count) {
            file.declare(detail::table_tensor(table.table, what), TensorType::i64, {count});
        };
        declare("tiers", std::ssize(table.tiers));
        declare("replicated", std::ssize(table.replicated));
        declare("unseen", (std::ssize(table.unseen) + 63) / 64);
        if (!table.lookups.empty()) declare("lookups", std::ssize(table.lookups));
        if (!table.touches.empty())
            file.declare(detail::table_tensor(table.table, "touches"), TensorType::i64, {std::ssize(table.touches), 3});
        if (table.reduction.has_value()) declare("reduction", 1);
    }
    file.metadata("format", detail::row_plan_file.format);
    file.metadata("tiers", detail::names_text(plan.tiers));
    file.metadata("tables", detail::names_text(names));
    file.begin();
    for (const TableRowPlan& table : plan.tables)
        for (const auto& numbers : {table.tiers, table.replicated, detail::bits_of(table.unseen), table.lookups,
                                    detail::numbers_of(table.touches), detail::number_of(table.reduction)})
            file.append(std::span<const std::int64_t>{numbers});
    file.end();
}

/// Reads a row plan, and checks all of it. Not collective. That its tables and tiers are those of a layer, the layer
/// checks.
/// \throws BadInput naming the file and what is wrong with it: damaged, no row plan, a row that is replicated twice or
/// is none of its table, tiers that do not add up, look-ups that are none
[[nodiscard]] inline RowPlan read_row_plan(const std::string& path) {
    SafetensorsReader file{path};
    RowPlan plan{.tiers = detail::names_in(file, detail::row_plan_file, "tiers"), .tables = {}};
    for (const std::string& name : detail::names_in(file, detail::row_plan_file, "tables")) {
        TableRowPlan& table = plan.tables.emplace_back();
        table.table = name;
        table.tiers = detail::row_plan_numbers(file, detail::table_tensor(name, "tiers"));
        table.replicated = detail::row_plan_numbers(file, detail::table_tensor(name, "replicated"));
        const auto unseen = detail::row_plan_numbers(file, detail::table_tensor(name, "unseen"));
        const std::string lookups = detail::table_tensor(name, "lookups");
        if (file.tensors().contains(lookups)) table.lookups = detail::row_plan_numbers(file, lookups);
        const std::string touches = detail::table_tensor(name, "touches");
        if (file.tensors().contains(touches)) {
            const auto tiers = std::ssize(table.tiers);
            table.touches.resize(table.tiers.size());
            for (std::size_t tier = 0; const std::int64_t rows : detail::row_plan_numbers(file, touches, {tiers, 3})) {
                RowTouches& of = table.touches[tier / 3];
                (tier % 3 == 0 ? of.rank : tier % 3 == 1 ? of.host : of.world) = rows;
                ++tier;
            }
        }
        const std::string reduction = detail::table_tensor(name, "reduction");
        const auto wrong = [&](const std::string& what) {
            return BadInput{concat({path, ": the row plan of table '", name, "': ", what})};
        };
        if (file.tensors().contains(reduction)) {
            const std::int64_t number = detail::row_plan_numbers(file, reduction, {1})[0];
            if (number != 0 && number != 1)
                throw wrong(concat({"its reduction is ", number, ": give 0 for touched or 1 for dense"}));
            table.reduction = number == 0 ? RowReduction::touched : RowReduction::dense;
        }
        for (const std::int64_t rows : table.tiers)
            if (rows < 0 || __builtin_add_overflow(table.rows, rows, &table.rows))
                throw wrong(concat({"a tier has ", rows, " rows: give each 0 or more, and at most 2^63 - 1 together"}));
        if (!unseen.empty() && std::ssize(unseen) != (table.rows == 0 ? 0 : (table.rows - 1) / 64 + 1))
            throw wrong(concat({"it has ", unseen.size(), " words that say which of ", table.rows, " rows were seen"}));
        table.unseen.resize(unseen.empty() ? 0 : static_cast<std::size_t>(table.rows));
        for (std::size_t row = 0; row < table.unseen.size(); ++row)
            table.unseen[row] = (static_cast<std::uint64_t>(unseen[row / 64]) >> row % 64 & 1U) != 0;
        if (const auto last = static_cast<std::uint64_t>(table.rows) % 64;
            !unseen.empty() && last != 0 && static_cast<std::uint64_t>(unseen.back()) >> last != 0)
            throw wrong(concat({"it says of rows from ", table.rows, " on whether they were seen: there are none"}));
    }
    try {
        check(plan);
    } catch (const BadInput& error) {
        throw BadInput{concat({path, ": ", error.what()})};
    }
    return plan;
}

}  // namespace shardwise::inline SHARDWISE_ABI
