// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shardwise/data/csv_schema.hpp"
#include "shardwise/data/next_items.hpp"
#include "shardwise/data/sequences.hpp"

/// \file
/// The data of train_sequence: which item of a user comes next.

namespace train_dlrm {

namespace sw = shardwise;

/// What train_sequence asks for beyond the options of all trainers.
struct SequenceOptions {
    std::string pooling = "attention";  ///< or transformer or mean: of histories
    std::int64_t history = 50;          ///< most items that a sample looks back on
    std::int64_t negatives = 4;         ///< items a training sample that did not come next
    std::int64_t heads = 2;             ///< of attention and transformer
    std::int64_t blocks = 1;            ///< of transformer
    std::int64_t rows = 0;              ///< of the table of items; 0: as many as the items take
    std::string law;                    ///< of generated items, as row_law() takes it; empty: a Zipf of `rows`
    std::int64_t users = 4000;          ///< generated
    std::int64_t length = 40;           ///< longest generated history of a user; the shortest is half of it
    std::shared_ptr<const sw::CsvHistorySchema> csv = nullptr;  ///< what files are; null: lines `user item`
    /// Of all users, in memory: one copy a process.
    std::shared_ptr<const sw::Histories> histories = nullptr;
};

/// Items that a user has not, of each test sample.
inline constexpr std::int64_t test_negatives = 50;

/// Reads or generates the histories. \param files  none: generated, and then there are rows
/// \throws BadInput
[[nodiscard]] std::shared_ptr<const sw::Histories> make_histories(const SequenceOptions& options,
                                                                  const std::vector<std::string>& files, double zipf,
                                                                  std::uint64_t seed);

/// The samples of one part. \param batch  samples a rank
[[nodiscard]] sw::NextItemOptions next_items(const SequenceOptions& options, sw::NextItemOptions::Part part,
                                             std::uint64_t seed, const sw::Slice& slice);

/// What ranking the test candidates by popularity is worth: by how often an item is trained on as the next one or, what
/// is the same, stands in a history of which it is not the last item. A pass over the test samples. Not collective.
[[nodiscard]] double popularity_auc(const SequenceOptions& options, std::uint64_t seed);

}  // namespace train_dlrm
