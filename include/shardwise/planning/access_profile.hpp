// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// How often each row of each table is looked up: what plans by frequency are made from.

namespace shardwise::inline SHARDWISE_ABI {

/// A row that was seen.
struct RowAccess {
    std::int64_t row = 0;
    std::int64_t lookups = 0;  ///< a row that stands twice in a sample is looked up twice
    std::int64_t samples = 0;  ///< that hold the row, in whichever feature of its table

    friend bool operator==(const RowAccess&, const RowAccess&) = default;
};

/// The rows of one table that were seen. Only they take memory, 24 bytes each.
struct TableAccess {
    std::string name;
    std::int64_t rows = 0;             ///< of the table, seen or not
    std::int64_t lookups = 0;          ///< in the whole table: of rows that are listed and of others; exact
    std::int64_t error = 0;            ///< 0: exact. Otherwise see AccessProfile
    std::vector<RowAccess> seen = {};  ///< ascending by row

    friend bool operator==(const TableAccess&, const TableAccess&) = default;
};

/// What samples looked up. A row's p is lookups / samples, the look-ups that a sample is expected to have of it; the
/// sum of p over a table is its L (FlexShard, section 4.1). Its q, samples that hold it / samples, is what expected
/// numbers of touched rows are made from.
///
/// **Error.** Counted exactly, `error` is 0 and every row that was looked up is listed with its counts. Counted in
/// bounded memory, a table's counts are never too high and at most `error` too low: of a row that is listed, look-ups
/// lie in [lookups, lookups + error] and samples in [samples, samples + error]; of one that is not, both lie in [0,
/// error].
struct AccessProfile {
    std::int64_t samples = 0;
    std::vector<TableAccess> tables = {};

    friend bool operator==(const AccessProfile&, const AccessProfile&) = default;
};

/// Checks that counts make sense and add up: each table has a name of its own; rows ascend, lie in their table and are
/// held by at least one sample and at most as many as there are samples or look-ups; look-ups of rows add up to their
/// table's, exactly where its error is 0, and otherwise to no more, and to no less than the error allows; look-ups of
/// all tables together are a number below 2^63.
/// Not collective. Cost: one pass. \throws BadInput naming table, row and value
void validate(const AccessProfile& profile);

/// Checks that a profile is of these tables: as many, in the same order, of the same names and numbers of rows.
/// Not collective. \throws BadInput naming the first table that is another one
void require_tables(const AccessProfile& profile, std::span<const TableConfig> tables);

/// The profile of the samples of both: counts and errors are added. Associative and commutative, whatever was counted
/// exactly and whatever was not; of exact profiles the result is exact. Not collective.
/// Cost: one pass over the rows of both; the result lists those of either.
/// \throws BadInput when the tables are not the same, or counts add up to 2^63 or more
[[nodiscard]] AccessProfile merged(const AccessProfile& a, const AccessProfile& b);

namespace detail {

/// a + b. \throws BadInput when that is no number \param what  is counted
[[nodiscard]] std::int64_t added(std::int64_t a, std::int64_t b, const char* what);

}  // namespace detail

/// Look-ups a sample, of all tables together; 0 where there is no sample.
[[nodiscard]] double lookups_per_sample(const AccessProfile& profile);
/// The same of one table (FlexShard's L). \param samples  the profile's
[[nodiscard]] double lookups_per_sample(const TableAccess& table, std::int64_t samples);
/// Rows that are not listed: of an exact profile, those that no sample holds.
[[nodiscard]] std::int64_t unseen_rows(const TableAccess& table);

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/planning/access_profile.ipp"
#endif
