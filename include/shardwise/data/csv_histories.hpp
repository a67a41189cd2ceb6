// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <xxhash.h>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/data/csv_fields.hpp"
#include "shardwise/data/csv_schema.hpp"
#include "shardwise/data/sequences.hpp"
#include "shardwise/data/time_text.hpp"

/// \file
/// The histories of users, from CSV and TSV files that a schema describes.

namespace shardwise::inline SHARDWISE_ABI {

/// Reads the histories of all users into memory: a record is an item of a user. They are in the order of the time
/// column, where there is one, and of two records of one time the first one comes first; otherwise in that of the
/// files. Users have any names: `Histories::users` has XXH64 of each.
///
/// Not collective: every rank that reads has all. Memory: as read_histories() of lines, and 24 bytes a record more
/// where there are times. \throws BadInput naming file, line, column and value, or when there is no record
[[nodiscard]] inline Histories read_histories(std::vector<std::string> files, const CsvHistorySchema& schema,
                                              std::size_t block_bytes = std::size_t{256} << 10) {
    struct Event {
        std::int64_t time = 0;
        std::int64_t user = 0;
        std::int64_t item = 0;
    };
    schema.validate();
    const bool timed = !schema.time_form.empty();
    std::vector<CsvColumn> columns{schema.user, schema.item};
    if (timed) columns.push_back(schema.time_column);
    CsvFields fields{std::move(files), schema.format, columns, block_bytes};
    const std::int64_t most = schema.rows == 0 ? std::numeric_limits<std::int64_t>::max() : schema.rows;
    std::vector<Event> events;
    detail::HistoryBuilder builder;
    while (fields.next()) {
        for (std::size_t c = 0; c != columns.size(); ++c)
            if (fields.is_missing(fields[c]))
                fields.fail(c, fields[c], "a missing value, and there is no history without it");
        const std::string_view user = fields[0];
        const std::string_view item = fields[1];
        Event event{.user = static_cast<std::int64_t>(XXH64(user.data(), user.size(), 0))};
        if (schema.hash) {
            event.item = static_cast<std::int64_t>(XXH64(item.data(), item.size(), schema.seed) %
                                                   static_cast<std::uint64_t>(schema.rows));
        } else {
            const auto [stop, status] = std::from_chars(item.data(), item.data() + item.size(), event.item);
            if (status != std::errc{} || stop != item.data() + item.size() || event.item < 0 || event.item >= most)
                fields.fail(1, item, concat({"expected an item, a whole number from 0 to ", most - 1}));
        }
        if (!timed) {
            builder.add(event.user, event.item);
            continue;
        }
        const std::optional<std::int64_t> time = parse_time(fields[2], schema.time_form);
        if (!time) fields.fail(2, fields[2], concat({"expected a time of the form ", schema.time_form}));
        event.time = *time;
        events.push_back(event);
    }
    std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.time < b.time; });
    for (const Event& event : events)
        builder.add(event.user, event.item);
    return builder.finish(schema.rows, fields.file());
}

}  // namespace shardwise::inline SHARDWISE_ABI
