// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "embedding.hpp"
#include "sequences.hpp"
#include "shardwise/data/csv_schema.hpp"
#include "shardwise/data/generator.hpp"
#include "shardwise/optimizer/learning_rate.hpp"
#include "shardwise/planning/access_profile.hpp"
#include "shardwise/planning/flexshard.hpp"
#include "shardwise/sharding/row_plan.hpp"
#include "shardwise/sharding/towers.hpp"

/// \file
/// What the command line says.

namespace train_dlrm {

/// A size of the cache that was tried.
struct TriedCache {
    std::int64_t rows = 0;
    double step_seconds = 0;
};

/// How often a run saves: every so many steps, or seconds; the other one is 0.
struct SaveEvery {
    std::int64_t steps = 0;
    double seconds = 0;
};
/// "100" steps, or "30s", "10min" or "2h". \throws BadInput
[[nodiscard]] SaveEvery parse_save_every(const std::string& text);

/// Everything that a run depends on.
struct Options {
    // where
    int ranks = 4;  ///< under mpirun: that of the job
    int hosts = 0;  ///< 0: two where they divide the ranks, else one; under mpirun: the real ones
    double deadline_seconds = 300;
    bool mpi = false;  ///< found in the environment

    // how much
    std::uint64_t seed = 1;
    std::optional<std::uint64_t> data_seed = {};  ///< of generated data; `seed` unless given
    int feature_groups = 0;                       ///< of generated features that belong together
    std::optional<std::int64_t> steps;            ///< in all, with those of a loaded checkpoint
    int epochs = 1;
    std::int64_t batch = 32;  ///< samples a rank

    // data
    std::vector<std::string> data;
    std::vector<std::string> test;
    std::string schema;                        ///< file of `csv`; empty: data are Criteo's
    std::shared_ptr<const sw::CsvSchema> csv;  ///< what the columns of data and test are; null: Criteo's
    std::int64_t samples = 131072;             ///< an epoch of generated data
    std::int64_t test_samples = 16384;
    std::vector<sw::BagSizes> bags = {{}};  ///< of generated samples; one for all features, or one each
    double zipf = 1.05;

    // model
    std::string model = "dlrm";  ///< or dcn or sequence
    std::vector<std::int64_t> rows = {5000};
    int dim = 16;
    std::vector<std::int64_t> bottom;
    std::vector<std::int64_t> top = {128, 64, 1};
    std::int64_t cross_layers = 3;  ///< of DCN
    std::int64_t cross_rank = 0;    ///< of DCN and of --tower cross; 0: full

    std::optional<SequenceOptions> sequences;  ///< of the sequence model alone

    // policies
    Policies policies;
    sw::Towers towers;    ///< from a file
    int tower_count = 0;  ///< without one; 0: as the collective has it
    std::string tower_file;
    std::string plan;                                 ///< file of `row_plan`
    std::shared_ptr<const sw::RowPlan> row_plan;      ///< which rows are in which tier; null: none yet, or no tiers
    std::string profile;                              ///< file of `access`
    std::string profile_out;                          ///< file for what the trainer counts itself; empty: none
    std::shared_ptr<const sw::AccessProfile> access;  ///< to plan from; null: nobody has counted yet
    sw::FlexShardOptions placing;                     ///< how to plan, where there is no plan
    sw::GroupOptions groups;                          ///< of ranks that each hold every table
    std::optional<float> moment_scale;                ///< c; none: as many as groups
    bool sync_overlap = true;                         ///< a sync goes on behind dense work
    int per_feature = 0;                              ///< c of the towers' module
    int per_tower = 0;                                ///< p
    int tower_dim = 0;                                ///< D
    std::vector<std::int64_t> tune_cache;             ///< rows in dp to try; none: the plan says how many
    std::vector<TriedCache> tuned;                    ///< what was tried
    bool hot_batches = false;                         ///< samples of replicated rows alone have batches of their own
    std::int64_t hot_batch = 0;                       ///< samples a rank of these; 0: as of others
    std::string hot_order = "spread";                 ///< or first
    bool prefetch = true;
    sw::LearningRate learning_rate{.base = 0.02F};

    // what to show and keep
    bool explain = false;
    std::int64_t measure = 10;  ///< steps whose bytes are predicted
    std::string trace;
    std::string json;
    std::string save;
    std::optional<SaveEvery> save_every;
    int keep = 2;  ///< of the checkpoints in a folder, the newest
    std::string load;

    bool save_is_folder = false;  ///< of checkpoints in parts, and not one file
};

inline constexpr int dense_features = 13;
inline constexpr int categories = 26;

/// Reads the command line, and the histories of a sequence model.
/// \param program  train_dlrm, train_dcn or train_sequence: says which model
/// \returns nothing when it asked for help; `text` is the help then
/// \throws BadInput with one sentence
[[nodiscard]] std::optional<Options> parse_options(const std::string& program, int argc, const char* const* argv,
                                                   std::string& text);

/// Of a batch: dense columns, and features with ids.
struct BatchShape {
    std::int64_t dense = dense_features;
    std::int64_t features = categories;
};
[[nodiscard]] inline BatchShape batch_shape(const Options& o) {
    if (o.sequences) return {.dense = 0, .features = 2};
    return o.csv == nullptr ? BatchShape{}
                            : BatchShape{.dense = std::ssize(o.csv->dense), .features = std::ssize(o.csv->categorical)};
}
/// Elements of the vectors that meet in the dense part: of the tables, or of the towers' modules.
[[nodiscard]] inline int interaction_dim(const Options& o) {
    return o.policies.tower == "pass" ? o.dim : o.tower_dim;
}
/// How dense products are summed.
[[nodiscard]] sw::DensePrecision precision_of(const Options& o);
[[nodiscard]] const char* name_of(sw::DensePrecision precision);
/// The module of each tower, where policies.tower says that there is one.
[[nodiscard]] sw::AnyModule::Config module_config(const Options& options);

/// A schema with what --rows says of the tables of which it has none of their own. \param rows_given  on the command
/// line, in the place of the schema's number for all \throws BadInput
[[nodiscard]] sw::CsvSchema read_schema(const std::string& path, const std::vector<std::int64_t>& rows,
                                        bool rows_given);

/// The tables of the model.
[[nodiscard]] std::vector<sw::TableConfig> tables_of(const Options& options);

/// The towers that the command line asks for; none: as the layer has it. \throws BadInput when they do not divide the
/// hosts, or a file's features are not those of the tables
[[nodiscard]] sw::Towers towers_of(const Options& options, const sw::Topology& topology);

/// The topology that tables are placed on: of a group. \throws BadInput for groups that there are not
[[nodiscard]] sw::Topology group_topology(const Options& options, const sw::Topology& world);

/// The options as they are written into a report.
[[nodiscard]] nlohmann::json to_json(const Options& options, const sw::Topology& topology);

}  // namespace train_dlrm
