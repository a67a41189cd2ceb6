// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/data/csv_schema.hpp"
#include "shardwise/data/quoted.hpp"
#include "shardwise/data/time_text.hpp"

/// \file
/// Schemas of CSV and TSV files, in JSON. docs/csv.md has all keys.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// An object of a schema, whose keys are known. Errors say where it stands.
class SchemaObject {
  public:
    /// \throws BadInput when it is no object, or has a key that is none of `keys`
    SchemaObject(const nlohmann::json& object, std::string where, std::initializer_list<const char*> keys)
        : object_{&object}, where_{std::move(where)} {
        if (!object.is_object()) refuse(concat({": ", object.dump(), ", expected an object: {...}"}));
        for (const auto& [key, value] : object.items()) {
            if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
            std::string all;
            for (const char* known : keys)
                all += (all.empty() ? "" : ", ") + std::string{known};
            refuse(concat({": there is no key ", shardwise::quoted(key), "; give one of ", all}));
        }
    }

    [[noreturn]] void refuse(const std::string& why) const { throw BadInput{where_ + why}; }
    [[noreturn]] void refuse(const char* key, const nlohmann::json& value, const std::string& expected) const {
        refuse(concat({", key '", key, "': ", value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                       ", expected ", expected}));
    }
    [[nodiscard]] const std::string& where() const noexcept { return where_; }
    /// Null where there is none.
    [[nodiscard]] const nlohmann::json* find(const char* key) const {
        const auto found = object_->find(key);
        return found == object_->end() ? nullptr : &*found;
    }

    void read(const char* key, bool& to) const {
        const nlohmann::json* value = find(key);
        if (value == nullptr) return;
        if (!value->is_boolean()) refuse(key, *value, "true or false");
        to = value->get<bool>();
    }
    void read(const char* key, std::string& to) const {
        const nlohmann::json* value = find(key);
        if (value == nullptr) return;
        if (!value->is_string() || value->get_ref<const std::string&>().empty())
            refuse(key, *value, "a text that is not empty");
        to = value->get<std::string>();
    }
    void read_character(const char* key, char& to) const {
        const nlohmann::json* value = find(key);
        if (value == nullptr) return;
        if (!value->is_string() || value->get_ref<const std::string&>().size() != 1 ||
            value->get_ref<const std::string&>()[0] == '\0')
            refuse(key, *value, R"(one character, such as "," or "\t" or "|")");
        to = value->get_ref<const std::string&>()[0];
    }
    /// A whole number from `least` on.
    template <class T>
    void read_whole(const char* key, T& to, std::int64_t least) const {
        const nlohmann::json* value = find(key);
        if (value == nullptr) return;
        if (!is_whole(*value, least)) refuse(key, *value, concat({"a whole number from ", least, " on"}));
        to = value->get<T>();
    }
    /// A text or several.
    void read_texts(const char* key, std::vector<std::string>& to) const {
        const nlohmann::json* value = find(key);
        if (value == nullptr) return;
        const bool list = value->is_array() && !value->empty() &&
                          std::all_of(value->begin(), value->end(), [](const auto& one) { return one.is_string(); });
        if (!list && !value->is_string()) refuse(key, *value, "a text or a list of texts");
        to = list ? value->get<std::vector<std::string>>() : std::vector<std::string>{value->get<std::string>()};
    }
    void read_column(const char* key, CsvColumn& to) const {
        const nlohmann::json* value = find(key);
        if (value == nullptr) refuse(concat({": key '", key, "' is missing; give the name or the number of a column"}));
        to = column(key, *value);
    }
    [[nodiscard]] CsvColumn column(const char* key, const nlohmann::json& value) const {
        if (value.is_string() && !value.get_ref<const std::string&>().empty())
            return {.name = value.get<std::string>()};
        if (is_whole(value, 1) && value.get<std::int64_t>() <= std::numeric_limits<int>::max())
            return {.number = value.get<int>()};
        refuse(key, value, "the name of a column, or its number, from 1 on");
    }
    void read_time(CsvTime& to) const {
        read("time", to.form);
        const nlohmann::json* part = find("part");
        if (part == nullptr) {
            if (!to.form.empty())
                refuse(": key 'time' without 'part'; say which part of it: minute, hour, weekday, day or month");
            return;
        }
        if (to.form.empty())
            refuse(R"(: key 'part' without 'time'; say how times are written, such as "%Y-%m-%d %H:%M:%S")");
        to.part = one_of<TimePart>("part", *part, time_part_names);
    }
    template <class Enum, std::size_t N>
    [[nodiscard]] Enum one_of(const char* key, const nlohmann::json& value,
                              const std::array<const char*, N>& names) const {
        std::string all;
        for (std::size_t i = 0; i != N; ++i) {
            if (value.is_string() && value.get_ref<const std::string&>() == names[i]) return static_cast<Enum>(i);
            all += (i == 0 ? "\"" : i + 1 == N ? " or \"" : ", \"") + std::string{names[i]} + "\"";
        }
        refuse(key, value, all);
    }

  private:
    [[nodiscard]] static bool is_whole(const nlohmann::json& value, std::int64_t least) {
        if (value.is_number_unsigned())
            return value.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()} &&
                   value.get<std::int64_t>() >= least;
        return value.is_number_integer() && value.get<std::int64_t>() >= least;
    }

    const nlohmann::json* object_;
    std::string where_;
};

[[nodiscard]] inline CsvFormat csv_format_of(const SchemaObject& all) {
    CsvFormat format;
    all.read_character("separator", format.separator);
    all.read("quotes", format.quotes);
    if (const nlohmann::json* header = all.find("header"); header != nullptr && !header->is_boolean()) {
        format.header = false;
        if (!header->is_array()) all.refuse("header", *header, "true, false, or a list of the names of all columns");
        all.read_texts("header", format.names);
    } else {
        all.read("header", format.header);
    }
    all.read_texts("missing_values", format.missing_values);
    if (const nlohmann::json* ignore = all.find("ignore"); ignore != nullptr) {
        format.ignore_others = *ignore == "others";
        if (!format.ignore_others && !ignore->is_array())
            all.refuse("ignore", *ignore, "a list of columns, or \"others\"");
        for (const nlohmann::json& column : format.ignore_others ? nlohmann::json::array() : *ignore)
            format.ignore.push_back(all.column("ignore", column));
    }
    return format;
}

[[nodiscard]] inline CsvLabel csv_label_of(const SchemaObject& all) {
    CsvLabel label;
    const nlohmann::json* value = all.find("label");
    if (value == nullptr || !value->is_object()) {
        all.read_column("label", label.column);
        return label;
    }
    const SchemaObject object{*value, all.where() + ", label", {"column", "positive", "negative", "at_least"}};
    object.read_column("column", label.column);
    object.read_texts("positive", label.positive);
    object.read_texts("negative", label.negative);
    if (const nlohmann::json* least = object.find("at_least"); least != nullptr) {
        if (!least->is_number()) object.refuse("at_least", *least, "a number");
        label.at_least = least->get<double>();
    }
    return label;
}

[[nodiscard]] inline CsvDense csv_dense_of(const nlohmann::json& value, const std::string& where) {
    CsvDense dense;
    const nlohmann::json object_of_name = {{"column", value}};
    const SchemaObject object{
        value.is_object() ? value : object_of_name, where, {"column", "transform", "time", "part", "missing"}};
    object.read_column("column", dense.column);
    if (const nlohmann::json* transform = object.find("transform"); transform != nullptr)
        dense.log1p = object.one_of<int>("transform", *transform, std::array{"none", "log1p"}) == 1;
    object.read_time(dense.time);
    if (const nlohmann::json* missing = object.find("missing"); missing != nullptr) {
        if (*missing != "error" && !(missing->is_number() && std::isfinite(missing->get<float>())))
            object.refuse("missing", *missing, "a number, or \"error\"");
        dense.missing = missing->is_number() ? std::optional{missing->get<float>()} : std::nullopt;
    }
    return dense;
}

[[nodiscard]] inline CsvCategory csv_category_of(const nlohmann::json& value, const std::string& where) {
    CsvCategory category;
    const nlohmann::json object_of_name = {{"column", value}};
    const SchemaObject object{value.is_object() ? value : object_of_name,
                              where,
                              {"column", "name", "table", "rows", "ids", "split", "time", "part", "missing"}};
    object.read_column("column", category.column);
    object.read("name", category.name);
    object.read("table", category.table);
    object.read_whole("rows", category.rows, 1);
    object.read_character("split", category.split);
    object.read_time(category.time);
    if (const nlohmann::json* ids = object.find("ids"); ids != nullptr) {
        category.ids = object.one_of<CsvIds>("ids", *ids, std::array{"hash", "row", "modulo"});
        if (!category.time.form.empty())
            object.refuse(": key 'ids' has no effect with 'time': a part of a time is the row");
    }
    if (const nlohmann::json* missing = object.find("missing"); missing != nullptr) {
        if (missing->is_number()) {
            category.missing = CsvMissing::row;
            object.read_whole("missing", category.missing_row, 0);
        } else if (*missing == "own_id") {
            category.missing = CsvMissing::own_id;
        } else if (*missing == "empty") {
            category.missing = CsvMissing::empty;
        } else if (*missing == "error") {
            category.missing = CsvMissing::error;
        } else {
            object.refuse("missing", *missing, R"(the number of a row, "own_id", "empty" or "error")");
        }
    }
    return category;
}

/// \throws BadInput for a file that cannot be read, is no JSON, or has a key twice
[[nodiscard]] inline nlohmann::json read_schema_json(const std::string& path) {
    std::ifstream file{path};
    if (!file) throw BadInput{concat({path, ": cannot be read"})};
    std::vector<std::set<std::string>> keys;  // of the objects that are open
    const auto watch = [&](int, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
        if (event == nlohmann::json::parse_event_t::object_start) keys.emplace_back();
        if (event == nlohmann::json::parse_event_t::object_end) keys.pop_back();
        if (event == nlohmann::json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
            throw BadInput{
                concat({path, ": an object has the key ", shardwise::quoted(parsed.get<std::string>()), " twice"})};
        return true;
    };
    try {
        return nlohmann::json::parse(file, watch);
    } catch (const nlohmann::json::exception& error) {
        std::string what = error.what();
        what.erase(0, what.find("] ") == std::string::npos ? 0 : what.find("] ") + 2);
        throw BadInput{concat({path, ": is no JSON: ", what})};
    }
}

/// The object of a schema, with the keys that schemas have.
[[nodiscard]] inline SchemaObject csv_schema_object(const nlohmann::json& json, const std::string& path) {
    return {json,
            path,
            {"separator", "quotes", "header", "missing_values", "ignore", "label", "dense", "categorical", "rows",
             "seed", "history"}};
}

}  // namespace detail

/// Reads what a schema says of clicks. Not collective.
/// \param rows  of tables of which the schema does not say it; 0: it has to
/// \throws BadInput naming the file, the place in it and what is wrong
[[nodiscard]] inline CsvSchema read_csv_schema(const std::string& path, std::int64_t rows = 0) {
    const nlohmann::json json = detail::read_schema_json(path);
    const detail::SchemaObject all = detail::csv_schema_object(json, path);
    CsvSchema schema{.format = detail::csv_format_of(all), .label = detail::csv_label_of(all)};
    schema.rows = rows;
    all.read_whole("rows", schema.rows, 1);
    all.read_whole("seed", schema.seed, 0);
    for (const char* key : {"dense", "categorical"}) {
        const nlohmann::json* list = all.find(key);
        if (list == nullptr) continue;
        if (!list->is_array()) all.refuse(key, *list, "a list of columns");
        for (std::size_t i = 0; i != list->size(); ++i) {
            const std::string where = concat({path, ", entry ", i + 1, " of '", key, "'"});
            if (std::string_view{key} == "dense")
                schema.dense.push_back(detail::csv_dense_of((*list)[i], where));
            else
                schema.categorical.push_back(detail::csv_category_of((*list)[i], where));
        }
    }
    try {
        schema.validate();
    } catch (const BadInput& error) {
        throw BadInput{concat({path, ": ", error.what()})};
    }
    return schema;
}

/// Reads what a schema says of histories: its key "history", and how files are written. Columns that it does not name
/// are ignored. Not collective.
/// \param rows  of the table of items where the schema does not say it; 0: as many as they take
/// \throws BadInput naming the file, the place in it and what is wrong
[[nodiscard]] inline CsvHistorySchema read_csv_history_schema(const std::string& path, std::int64_t rows = 0) {
    const nlohmann::json json = detail::read_schema_json(path);
    const detail::SchemaObject all = detail::csv_schema_object(json, path);
    const nlohmann::json* value = all.find("history");
    if (value == nullptr) all.refuse(R"(: key 'history' is missing; give {"user": COLUMN, "item": COLUMN})");
    const detail::SchemaObject object{*value, path + ", history", {"user", "item", "time", "ids", "rows"}};
    CsvHistorySchema schema{.format = detail::csv_format_of(all)};
    schema.format.ignore.clear();
    schema.format.ignore_others = true;
    object.read_column("user", schema.user);
    object.read_column("item", schema.item);
    if (const nlohmann::json* time = object.find("time"); time != nullptr) {
        const detail::SchemaObject of_time{*time, path + ", history, time", {"column", "form"}};
        of_time.read_column("column", schema.time_column);
        of_time.read("form", schema.time_form);
        if (schema.time_form.empty())
            of_time.refuse(R"(: key 'form' is missing; say how times are written, such as "%s")");
    }
    if (const nlohmann::json* ids = object.find("ids"); ids != nullptr)
        schema.hash = object.one_of<int>("ids", *ids, std::array{"row", "hash"}) == 1;
    schema.rows = rows;
    object.read_whole("rows", schema.rows, 1);
    all.read_whole("seed", schema.seed, 0);
    try {
        schema.validate();
    } catch (const BadInput& error) {
        throw BadInput{concat({path, ": ", error.what()})};
    }
    return schema;
}

}  // namespace shardwise::inline SHARDWISE_ABI
