// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "evaluation.hpp"
#include "feed.hpp"
#include "meter.hpp"
#include "options.hpp"
#include "rows_report.hpp"
#include "shardwise/sharding/row_map.hpp"

/// \file
/// What a run comes to: a table for people, JSON for programs.

namespace train_dlrm {

/// Where the seconds of a rank's steps went.
struct Times {
    static constexpr std::array<const char*, 6> names = {"compute", "exchange", "dense_reduction",
                                                         "sync",    "input",    "replica_sync"};
    std::array<double, 6> seconds{};
    double exposed = 0;  ///< of the exchange: nothing was computed meanwhile
    double lookup = 0;   ///< of compute and exchange: rows were looked up
    double total = 0;
};

/// The payload of syncs of copies, in bytes.
struct Synced {
    std::int64_t moved = 0;
    std::int64_t predicted = 0;
};

/// One rank's part of a report. Trivially copyable, so that ranks can gather it.
struct RankPart {
    Times times;
    sw::Traffic predicted;  ///< what the rank sends in the measured steps
    sw::Traffic moved;
    LayerMemory predicted_memory;  ///< after the measured steps
    LayerMemory memory;
    std::int64_t dense_static_bytes = 0;  ///< weights, gradients and moments of the dense part
    std::int64_t dense_dynamic_bytes = 0;
    ByTier lookups = {};        ///< (tier): ids of the steps, without those of tests
    std::int64_t unseen = 0;    ///< of these, of rows that no profile saw
    std::int64_t asked = 0;     ///< ids of the steps
    std::int64_t distinct = 0;  ///< of these, in their batch and table, where that is counted
    ByTier payload = {};        ///< (tier): packed in the measured steps
    ByTier predicted_payload = {};
    Synced synced = {};              ///< in the measured steps
    std::int64_t layer_payload = 0;  ///< of the embedding layer in these steps, as the communicator counted it
    std::int64_t looked_up = 0;      ///< rows, in this rank's tables, of the steps
    ByTier looked_up_by_tier = {};   ///< (tier): the same
};

/// One pass over the data, or what was run of it.
struct Epoch {
    int number = 0;
    std::int64_t steps = 0;
    Quality quality;
};

/// The checkpoint that the run wrote: its last step, whichever epoch was the best.
struct Saved {
    std::string file;
    int epoch = 0;           ///< 0 when nothing was trained
    std::int64_t steps = 0;  ///< in all
};

/// Everything, on rank 0.
struct Report {
    sw::Topology topology;
    std::int64_t first_step = 0;  ///< steps of the checkpoint that the run went on from
    std::vector<double> losses;   ///< (step), mean over the global batch
    std::int64_t samples = 0;     ///< learnt from
    std::vector<Epoch> epochs;
    bool tested = false;  ///< quality is that of test data, else that of training data, predicted before it is learnt
    std::optional<double> popularity_auc;  ///< of sequences: what ranking by popularity is worth
    std::optional<Saved> saved;
    int signal = 0;  ///< that ended the run; 0: it came to its end
    ModelSize size;
    std::int64_t measured_steps = 0;
    std::vector<RankPart> ranks;
    RowsReport rows;                        ///< of all steps
    std::optional<std::array<Fed, 2>> fed;  ///< (kind): others and hot ones, with --hot-batches

    /// The epoch of the highest AUC; null where there is none.
    [[nodiscard]] const Epoch* best() const;
    [[nodiscard]] double samples_per_second() const;
    /// All ranks, all measured steps.
    [[nodiscard]] sw::Traffic predicted() const;
    [[nodiscard]] sw::Traffic moved() const;
    [[nodiscard]] Synced synced() const;
    /// The most seconds of look-ups on a rank, over their mean; NaN where nothing was looked up.
    [[nodiscard]] double imbalance() const;
};

[[nodiscard]] nlohmann::json to_json(const Report& report, const Options& options);
[[nodiscard]] std::string to_table(const Report& report);

}  // namespace train_dlrm
