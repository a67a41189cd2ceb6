// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "options.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string_view>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "group_options.hpp"
#include "output_files.hpp"
#include "sequence_options.hpp"
#include "settings_json.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/data/csv_schema_file.hpp"
#include "shardwise/topology/topology.hpp"
#include "shardwise/tower/tower_file.hpp"
#include "tier_options.hpp"

namespace train_dlrm {

namespace {

/// "64-16": numbers with dashes, or whatever `separator` is, between them.
std::vector<std::int64_t> parse_numbers(const std::string& flag, const std::string& text, char separator,
                                        const char* example) {
    const auto wrong = [&] {
        return sw::BadInput{fmt::format("{} '{}': give positive numbers, such as {}", flag, text, example)};
    };
    std::vector<std::int64_t> widths;
    const char* at = text.data();
    const char* end = at + text.size();
    for (;;) {
        std::int64_t width = 0;
        const auto [stop, status] = std::from_chars(at, end, width);
        if (status != std::errc{} || width < 1) throw wrong();
        widths.push_back(width);
        if (stop == end) return widths;
        at = stop + 1;
        if (*stop != separator) throw wrong();
    }
}

std::vector<sw::BagSizes> parse_bags(const std::string& text) {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    std::vector<sw::BagSizes> bags;
    for (const std::int64_t ids : parse_numbers("--bag", text, ',', "3 or 26 numbers with commas between them")) {
        if (ids > most) throw sw::BadInput{fmt::format("--bag {}: give at most {}", ids, most)};
        bags.push_back(ids == 1 ? sw::BagSizes::single() : sw::BagSizes::up_to(static_cast<std::int32_t>(ids)));
    }
    return bags;
}

/// \param each  one a feature, or one for all
template <class T>
const T& of_feature(const std::vector<T>& each, int feature) {
    return each[each.size() == 1 ? 0 : static_cast<std::size_t>(feature)];
}

std::string joined(const std::vector<std::int64_t>& widths) {
    return fmt::format("{}", fmt::join(widths, "-"));
}

sw::LearningRate::Decay parse_decay(const std::string& name) {
    using Decay = sw::LearningRate::Decay;
    if (name == "constant") return Decay::none;
    if (name == "step") return Decay::step;
    if (name == "polynomial") return Decay::polynomial;
    throw sw::BadInput{fmt::format("--lr-schedule '{}': give constant, step or polynomial", name)};
}

std::string decay_name(sw::LearningRate::Decay decay) {
    using Decay = sw::LearningRate::Decay;
    return decay == Decay::none ? "constant" : decay == Decay::step ? "step" : "polynomial";
}

int environment_number(const char* name) {
    const char* text = std::getenv(name);
    return text == nullptr ? 0 : std::atoi(text);
}

template <class T>
void at_least(const char* flag, T value, T least) {
    if (!(value >= least)) throw sw::BadInput{fmt::format("{} {}: give at least {}", flag, value, least)};
}

/// The data of train_dlrm and train_dcn.
void add_click_data(CLI::App& app, Options& o, std::string& bag) {
    const char* data = "Data";
    app.add_option("--data", o.data,
                   "Files to train on: Criteo click logs, plain or gzip, or the numpy files that TorchRec makes of "
                   "them, three a day: day_0_dense.npy, day_0_sparse.npy, day_0_labels.npy. Unless given, clicks "
                   "are generated")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->group(data);
    app.add_option("--test", o.test, "Files to test on after every epoch")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->group(data);
    app.add_option("--schema", o.schema,
                   "What the columns of --data and --test are, where they are CSV or TSV files of one's own: label, "
                   "dense and categorical columns (JSON, see docs/csv.md)")
        ->type_name("FILE")
        ->default_str("")
        ->group(data);
    app.add_option("--samples", o.samples, "Generated samples an epoch")->group(data);
    app.add_option("--test-samples", o.test_samples, "Generated samples to test on")->group(data);
    app.add_option("--bag", bag,
                   "Generated ids a feature and sample: 1, or from 0 to this number; one number for all, or 26 with "
                   "commas between them")
        ->group(data);
    app.add_option("--feature-groups", o.feature_groups,
                   "Generated features belong together in so many groups: clicks depend on pairs of features of a "
                   "group. 0: on each feature by itself")
        ->group(data);
}

std::string about(const Options& o) {
    if (o.sequences)
        return "Trains a sequence model: which item of a user comes next, by learned pooling of the items before, on "
               "histories of users, or on generated ones.";
    return std::string{o.model == "dcn" ? "Trains a deep and cross network (DCN v2)"
                                        : "Trains a deep learning recommendation model (DLRM)"} +
           " on Criteo click logs, on CSV files with a schema, or on generated clicks.";
}

void add_tower_options(CLI::App& app, Options& o, std::string& towers) {
    const char* policies = "Policies";
    app.add_option("--towers", towers,
                   "Number of towers that the tables are placed in, in turn, or a file that says which feature is in "
                   "which (JSON, as partition_towers writes it); the number divides the hosts. Unless given: with "
                   "--collective hierarchical one a host, otherwise none")
        ->default_str("")
        ->group(policies);
    app.add_option("--tower", o.policies.tower, axis_help("tower"))->group(policies);
    app.add_option("--tower-c", o.per_feature,
                   "Vectors that --tower dot makes of each feature (c). Unless given: 1, or 0 with "
                   "--tower-p")
        ->default_str("")
        ->group(policies);
    app.add_option("--tower-p", o.per_tower,
                   "Vectors that --tower dot and cross make of the tower as a whole (p). Unless "
                   "given: 0 for dot, 1 for cross")
        ->default_str("")
        ->group(policies);
    app.add_option("--tower-dim", o.tower_dim,
                   "Columns of the vectors of --tower dot and cross (D). Unless given: half of --dim")
        ->default_str("")
        ->group(policies);
}

/// A number of towers, or a file of them.
void parse_towers(const std::string& text, Options& o) {
    const auto [stop, status] = std::from_chars(text.data(), text.data() + text.size(), o.tower_count);
    if (status != std::errc::invalid_argument && stop == text.data() + text.size()) {
        if (status != std::errc{})
            throw sw::BadInput{
                fmt::format("--towers {}: there are at most {} features", text, batch_shape(o).features)};
        if (o.tower_count < 1) throw sw::BadInput{fmt::format("--towers {}: give at least 1, or a file", text)};
        return;
    }
    std::error_code error;
    if ((!std::filesystem::exists(text, error) && !error) || std::filesystem::is_directory(text, error))
        throw sw::BadInput{
            fmt::format("--towers {}: is neither a number nor a file; give a number of towers, or a file as "
                        "partition_towers writes it",
                        text)};
    o.tower_count = 0;
    o.tower_file = text;
    o.towers = sw::read_towers(text);
}

void check(const Options& o) {
    at_least("--batch", o.batch, std::int64_t{1});
    at_least("--epochs", o.epochs, 0);
    at_least("--steps", o.steps.value_or(0), std::int64_t{0});
    at_least("--samples", o.samples, std::int64_t{1});
    at_least("--test-samples", o.test_samples, std::int64_t{0});
    at_least("--feature-groups", o.feature_groups, 0);
    at_least("--dim", o.dim, 1);
    at_least("--cross-layers", o.cross_layers, std::int64_t{1});
    at_least("--cross-rank", o.cross_rank, std::int64_t{0});
    if (o.cross_rank > std::numeric_limits<int>::max())
        throw sw::BadInput{
            fmt::format("--cross-rank {}: give at most {}", o.cross_rank, std::numeric_limits<int>::max())};
    at_least("--tower-c", o.per_feature, 0);
    at_least("--tower-p", o.per_tower, 0);
    at_least("--measure", o.measure, std::int64_t{0});
    at_least("--lr-warmup", o.learning_rate.warmup, std::int64_t{0});
    at_least("--lr-decay-steps", o.learning_rate.decay_steps, std::int64_t{1});
    if (!(o.deadline_seconds > 0 && o.deadline_seconds <= 3e7))
        throw sw::BadInput{fmt::format("--deadline {}: give a number of seconds above 0, and at most 3e7, a year",
                                       o.deadline_seconds)};
    const std::int64_t most_samples = std::numeric_limits<std::int32_t>::max() / batch_shape(o).features;
    if (o.batch > most_samples)
        throw sw::BadInput{fmt::format("--batch {}: give at most {} samples a rank and step", o.batch, most_samples)};
    if (!(o.learning_rate.base > 0) || !std::isfinite(o.learning_rate.base))
        throw sw::BadInput{fmt::format("--learning-rate {}: give a number above 0", o.learning_rate.base)};
    if (o.csv == nullptr && o.rows.size() != 1 && o.rows.size() != categories)
        throw sw::BadInput{
            fmt::format("--rows: {} numbers; give one for all features, or {}", o.rows.size(), categories)};
    if (o.bags.size() != 1 && o.bags.size() != categories)
        throw sw::BadInput{
            fmt::format("--bag: {} numbers; give one for all features, or {}", o.bags.size(), categories)};
    if (!o.schema.empty() && o.data.empty())
        throw sw::BadInput{fmt::format("--schema {} without --data: it is of files; give them, too", o.schema)};
    if (!o.test.empty() && o.data.empty()) throw sw::BadInput{"--test without --data: give the files to train on, too"};
    check_policies(o.policies);
    if (o.policies.tower == "cross" && (o.per_feature != 0 || o.per_tower < 1))
        throw sw::BadInput{
            fmt::format("--tower cross with --tower-c {} and --tower-p {}: it maps the tower as a whole; "
                        "give --tower-p at least 1, and no --tower-c",
                        o.per_feature, o.per_tower)};
    if (o.policies.tower == "dot" && o.per_feature + o.per_tower == 0)
        throw sw::BadInput{"--tower dot with --tower-c 0 and --tower-p 0: no vector would be left; give one of them"};
    if (o.save_every && o.save.empty()) throw sw::BadInput{"--save-every without --save: say in which folder"};
    at_least("--keep", o.keep, 1);
    for (const std::string* path : {&o.json, &o.trace, &o.save, &o.profile_out})
        if (!path->empty() && !(path == &o.save && o.save_is_folder))
            output_files::check_writable(*path, path == &o.save || path == &o.profile_out);
    if (!o.load.empty() && !std::ifstream{o.load})
        throw sw::BadInput{fmt::format("{}: cannot be read: {}", o.load, std::strerror(errno))};
}

}  // namespace

sw::CsvSchema read_schema(const std::string& path, const std::vector<std::int64_t>& rows, bool rows_given) {
    sw::CsvSchema schema = sw::read_csv_schema(path, rows[0]);
    if (!rows_given) return schema;
    if (rows.size() != 1)
        throw sw::BadInput{fmt::format(
            "--rows: {} numbers; with --schema give one, for the tables of which the schema has none of their own",
            rows.size())};
    const auto rows_of_all = [&](std::int64_t of_others) {
        schema.rows = of_others;
        std::vector<std::int64_t> all;
        for (const sw::TableConfig& table : schema.tables(1))
            all.push_back(table.rows);
        return all;
    };
    const std::vector<std::int64_t> of_more = rows_of_all(rows[0] + 1);
    if (rows_of_all(rows[0]) == of_more)
        throw sw::BadInput{fmt::format("--rows has no effect: {} says the rows of every table; leave it out", path)};
    return schema;
}

SaveEvery parse_save_every(const std::string& text) {
    double number = 0;
    const char* const first = text.data();
    const auto [end, status] = std::from_chars(first, first + text.size(), number);
    const std::string unit{end, first + text.size()};
    const double seconds = unit == "s" ? number : unit == "min" ? 60 * number : unit == "h" ? 3600 * number : 0;
    const bool whole = unit.empty() && number == std::floor(number);
    if (status == std::errc{} && number > 0 && number <= 1e12) {
        if (whole) return {.steps = static_cast<std::int64_t>(number)};
        if (seconds > 0) return {.seconds = seconds};
    }
    throw sw::BadInput{fmt::format(
        "--save-every '{}': give a number of steps from 1 on, such as 500, or a time: 30s, 10min, 2h", text)};
}

std::optional<Options> parse_options(const std::string& program, int argc, const char* const* argv, std::string& text) {
    Options o;
    o.model = program == "train_dcn" ? "dcn" : program == "train_sequence" ? "sequence" : "dlrm";
    if (o.model == "sequence") set_sequence_defaults(o);
    std::string towers;
    std::string save_every;
    std::string rows = "5000";
    std::string bag = "1";
    std::string bottom;
    std::string top = joined(o.top);
    std::string decay = "constant";
    std::int64_t steps = 0;
    int ranks = 0;

    CLI::App app{about(o) +
                     "\nRanks are threads of this process, or, under mpirun, the processes of the job.\n"
                     "Exit status: 0 done; 2 bad usage or bad input; 3 a peer failed or a deadline passed.",
                 program};
    app.option_defaults()->always_capture_default()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);

    const char* where = "Where";
    app.add_option("--ranks", ranks, "Number of ranks; 4 unless given; under mpirun that of the job")
        ->default_str("4")
        ->group(where);
    auto* hosts =
        app.add_option(
               "--hosts", o.hosts,
               "Number of hosts, of which the ranks pretend to be; divides the ranks. Unless given: 2 where that "
               "divides the ranks, else 1; under mpirun the real ones")
            ->default_str("")
            ->group(where);
    app.add_option("--deadline", o.deadline_seconds, "Seconds that a rank waits for another before the run fails")
        ->group(where);

    const char* amount = "How much";
    app.add_option("--seed", o.seed, "Of the initial weights, and of generated data unless --data-seed is given")
        ->group(amount);
    auto* steps_option = app.add_option("--steps", steps,
                                        "Steps in all, those of a loaded checkpoint included; 0 trains nothing. Unless "
                                        "given: all batches of all epochs")
                             ->default_str("")
                             ->group(amount);
    app.add_option("--epochs", o.epochs, "Passes over the training data")->group(amount);
    app.add_option("--batch", o.batch, "Samples a rank and step")->group(amount);

    const char* data = "Data";
    if (o.sequences) {
        add_sequence_data(app, o);
    } else {
        add_click_data(app, o, bag);
    }
    app.add_option("--zipf", o.zipf, "Exponent of the power law of generated ids")->group(data);
    app.add_option("--data-seed", o.data_seed,
                   o.sequences ? "Of generated data, and of the order and the negatives of any. Unless given: --seed"
                               : "Of generated data. Unless given: --seed")
        ->default_str("")
        ->group(data);

    const char* model = "Model";
    if (!o.sequences)
        app.add_option("--rows", rows, "Rows a feature: one number for all, or 26 with commas between them")
            ->group(model);
    app.add_option("--dim", o.dim, "Columns of every table")->group(model);
    if (o.model == "dcn") app.add_option("--cross-layers", o.cross_layers, "Layers of the cross network")->group(model);
    if (o.sequences) {
        add_sequence_model(app, *o.sequences);
    } else {
        app.add_option("--cross-rank", o.cross_rank,
                       o.model == "dcn" ? "Rank of the weights of cross networks, that of --tower cross too; 0: full"
                                        : "Rank of the weights of the cross networks of --tower cross; 0: full")
            ->group(model);
        app.add_option(
               "--bottom", bottom,
               "Widths of the bottom MLP; the last is --dim, or --tower-dim with modules. Unless given: 64-<that>")
            ->default_str("")
            ->group(model);
    }
    app.add_option("--top", top, "Widths of the top MLP; the last is 1")->group(model);

    const char* policies = "Policies";
    Policies& p = o.policies;
    app.add_option("--sharding", p.sharding, axis_help("sharding"))->group(policies);
    app.add_option("--collective", p.collective, axis_help("collective"))->group(policies);
    if (!o.sequences) {
        add_tower_options(app, o, towers);
        app.add_option("--pooling", p.pooling, axis_help("pooling"))->group(policies);
    }
    app.add_option("--requests", p.requests, axis_help("requests"))->group(policies);
    app.add_option("--optimizer", p.optimizer, axis_help("optimizer"))->group(policies);
    app.add_option("--order", p.order, axis_help("order"))->group(policies);
    app.add_option("--precision", p.precision, axis_help("precision"))->default_str("")->group(policies);
    app.add_option("--wire", p.wire, axis_help("wire"))->group(policies);
    app.add_flag("--prefetch,!--no-prefetch", o.prefetch,
                 "Send the ids of the next batch while this one computes; the same results either way")
        ->group(policies);

    GroupFlags group_flags;
    add_group_options(app, o, group_flags);
    TierFlags tier_flags;
    add_tier_options(app, o, tier_flags);

    const char* rate = "Learning rate";
    app.add_option("--learning-rate", o.learning_rate.base, "Of tables and dense weights")->group(rate);
    app.add_option("--lr-schedule", decay, "constant, step or polynomial")->group(rate);
    app.add_option("--lr-warmup", o.learning_rate.warmup, "Steps of a linear ramp at the beginning")->group(rate);
    app.add_option("--lr-decay-start", o.learning_rate.decay_start, "Step after which the rate decays")->group(rate);
    app.add_option("--lr-decay-steps", o.learning_rate.decay_steps,
                   "polynomial: length of the decay; step: steps "
                   "between two drops")
        ->group(rate);
    app.add_option("--lr-decay-factor", o.learning_rate.decay_factor, "step: factor of each drop")->group(rate);
    app.add_option("--lr-decay-power", o.learning_rate.decay_power, "polynomial: its power")->group(rate);
    app.add_option("--lr-end", o.learning_rate.end, "polynomial: the last rate")->group(rate);

    const char* output = "Output";
    app.add_flag(
           "--explain", o.explain,
           "Show the plan, forward and derived backward, with the bytes that it predicts for the first batch, and "
           "end; go on when --steps or --epochs is given, too")
        ->group(output);
    app.add_option(
           "--measure", o.measure,
           "Steps, from the first on, whose bytes are predicted and held against those moved, and which --trace "
           "records. For the prediction all ranks gather all ids, outside of the measured times and bytes")
        ->group(output);
    app.add_option("--trace", o.trace, "File for a trace that Perfetto and chrome://tracing show")
        ->default_str("")
        ->group(output);
    app.add_option("--json", o.json, "File for the report")->default_str("")->group(output);
    app.add_option("--save", o.save,
                   "Checkpoint of the last step, whichever epoch was the best: a safetensors file, or, with "
                   "--save-every, for a path that ends with / and for a folder that is there, a folder to which each "
                   "rank writes its part")
        ->default_str("")
        ->group(output);
    app.add_option(
           "--save-every", save_every,
           "Checkpoints while the run trains, too, written beside it: every so many steps (500), or 30s, 10min, "
           "2h")
        ->default_str("")
        ->group(output);
    app.add_option("--keep", o.keep, "Of the checkpoints in the folder, so many stay, the newest")->group(output);
    app.add_option(
           "--load", o.load,
           "Checkpoint to go on from, of any sharding and number of ranks: a file, a folder (the newest in it), "
           "or a manifest in a folder")
        ->default_str("")
        ->group(output);

    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        text = app.help();
        return std::nullopt;
    } catch (const CLI::ParseError& error) {
        throw sw::BadInput{std::string{error.what()} + " (" + program + " --help shows all options)"};
    }
    if (!save_every.empty()) o.save_every = parse_save_every(save_every);
    std::error_code ignored;
    o.save_is_folder =
        !o.save.empty() && (o.save_every || o.save.ends_with('/') || std::filesystem::is_directory(o.save, ignored));

    const auto given = [&](const char* flag) {
        const CLI::Option* option = app.get_option_no_throw(flag);
        return option != nullptr && option->count() != 0;
    };
    for (const char* flag : {"--samples", "--test-samples", "--zipf", "--bag", "--feature-groups", "--data-seed",
                             "--law", "--users", "--length"})
        if (!o.data.empty() && given(flag) && !(o.sequences && std::string_view{flag} == "--data-seed"))
            throw sw::BadInput{
                fmt::format("{} has no effect with --data: it is for generated {}; leave one of the two out", flag,
                            o.sequences ? "histories" : "clicks")};
    if (steps_option->count() != 0) o.steps = steps;
    if (o.explain && !o.steps && app.get_option("--epochs")->count() == 0) o.steps = 0;
    o.learning_rate.decay = parse_decay(decay);
    o.rows = parse_numbers("--rows", rows, ',', "5000 or 26 numbers with commas between them");
    if (!o.schema.empty() && !o.sequences) {
        o.csv = std::make_shared<const sw::CsvSchema>(read_schema(o.schema, o.rows, given("--rows")));
        o.rows.clear();
        for (const sw::TableConfig& table : o.csv->tables(1))
            o.rows.push_back(table.rows);
    }
    o.bags = parse_bags(bag);
    for (const char* flag : {"--tower-c", "--tower-p", "--tower-dim"})
        if (p.tower == "pass" && given(flag))
            throw sw::BadInput{std::string{flag} +
                               " without --tower dot or cross has no effect: give one, or leave it out"};
    if (o.model == "dlrm" && p.tower != "cross" && given("--cross-rank"))
        throw sw::BadInput{"--cross-rank without --tower cross has no effect: give both, or leave it out"};
    if (!given("--tower-c")) o.per_feature = p.tower == "dot" && !given("--tower-p") ? 1 : 0;
    if (!given("--tower-p")) o.per_tower = p.tower == "cross" ? 1 : 0;
    if (!given("--tower-dim")) o.tower_dim = std::max(1, o.dim / 2);
    if (!towers.empty()) parse_towers(towers, o);
    at_least("--dim", o.dim, 1);
    at_least("--tower-dim", o.tower_dim, 1);
    if (!o.sequences && batch_shape(o).dense == 0) {
        if (given("--bottom"))
            throw sw::BadInput{fmt::format("--bottom has no effect: {} has no dense columns; leave it out", o.schema)};
    } else {
        o.bottom =
            parse_numbers("--bottom", bottom.empty() ? fmt::format("64-{}", interaction_dim(o)) : bottom, '-', "64-16");
    }
    o.top = parse_numbers("--top", top, '-', "128-64-1");
    if (o.learning_rate.decay != sw::LearningRate::Decay::none && app.get_option("--lr-decay-steps")->count() == 0)
        throw sw::BadInput{fmt::format("--lr-schedule {} without --lr-decay-steps: say how fast", decay)};

    const bool ranks_given = app.get_option("--ranks")->count() != 0;
    const int job = std::max(environment_number("OMPI_COMM_WORLD_SIZE"), environment_number("PMI_SIZE"));
    o.mpi = job != 0;
    if (o.mpi) {
        o.ranks = job;
        if (ranks_given && ranks != job)
            throw sw::BadInput{
                fmt::format("--ranks {} in a job of {} processes: leave it out under mpirun", ranks, job)};
    } else if (ranks_given) {
        o.ranks = ranks;
    }
    if (hosts->count() != 0) {
        static_cast<void>(sw::Topology::of(o.ranks, o.hosts));
    } else if (!o.mpi) {
        o.hosts = o.ranks % 2 == 0 && o.ranks > 0 ? 2 : 1;
        static_cast<void>(sw::Topology::of(o.ranks, o.hosts));
    }
    read_groups(app, o, group_flags);
    read_tiers(app, o, tier_flags);
    check(o);
    if (o.sequences) read_sequences(app, o);
    check_row_files(o);
    return o;
}

std::vector<sw::TableConfig> tables_of(const Options& o) {
    if (o.sequences)
        return {
            {.name = "item", .rows = o.sequences->histories->rows, .dim = o.dim, .features = {"history", "candidate"}}};
    static constexpr const char* turns[] = {"dp", "table", "row"};  // Mixed: one after the other
    std::vector<sw::TableConfig> tables;
    if (o.csv != nullptr) {
        tables = o.csv->tables(o.dim);
        for (std::size_t t = 0; t < tables.size() && o.policies.sharding == "mixed"; ++t)
            tables[t].sharding = turns[t % 3];
        return tables;
    }
    for (int f = 0; f < categories; ++f)
        tables.push_back({.name = fmt::format("C{}", f + 1),
                          .rows = of_feature(o.rows, f),
                          .dim = o.dim,
                          .features = {},
                          .sharding = o.policies.sharding == "mixed" ? turns[f % 3] : "",
                          .load = static_cast<float>(of_feature(o.bags, f).mean())});
    return tables;
}

namespace {

/// Of several groups each has towers, and the layer checks them.
void check_towers(const Options& o, const sw::Topology& topology, int towers) {
    if (o.groups.count == 1) static_cast<void>(sw::with_towers(topology, towers));
}

}  // namespace

sw::Towers towers_of(const Options& o, const sw::Topology& topology) {
    if (!o.towers.empty()) {
        try {
            static_cast<void>(sw::tower_of_tables(tables_of(o), o.towers));
            check_towers(o, topology, static_cast<int>(o.towers.size()));
        } catch (const sw::BadInput& error) {
            throw sw::BadInput{fmt::format("{}: {}", o.tower_file, error.what())};
        }
        return o.towers;
    }
    if (o.tower_count == 0) return {};
    check_towers(o, topology, o.tower_count);
    return sw::deal_tables(tables_of(o), o.tower_count);
}

sw::DensePrecision precision_of(const Options& o) {
    const std::string& given = o.policies.precision;
    if (given.empty() && o.policies.order == "tree") return sw::DensePrecision::single;
    if (given.empty()) return o.sequences ? sw::DensePrecision::wide : sw::DensePrecision::blocks;
    return given == "single"   ? sw::DensePrecision::single
           : given == "blocks" ? sw::DensePrecision::blocks
                               : sw::DensePrecision::wide;
}

const char* name_of(sw::DensePrecision precision) {
    switch (precision) {
        case sw::DensePrecision::single:
            return "single";
        case sw::DensePrecision::blocks:
            return "blocks";
        default:
            return "wide";
    }
}

sw::AnyModule::Config module_config(const Options& o) {
    if (o.policies.tower == "cross")
        return {sw::Cross::Config{.layers = 1,
                                  .rank = static_cast<int>(o.cross_rank),
                                  .per_tower = o.per_tower,
                                  .dimension = o.tower_dim,
                                  .precision = precision_of(o)}};
    return {sw::Dot::Config{.per_feature = o.per_feature,
                            .per_tower = o.per_tower,
                            .dimension = o.tower_dim,
                            .precision = precision_of(o)}};
}

namespace {

/// Towers that the layer has; null: none.
nlohmann::json towers_json(const Options& o, const sw::Topology& topology) {
    if (!o.tower_file.empty()) return o.tower_file;
    if (o.tower_count != 0) return o.tower_count;
    return where(o.policies.collective == "hierarchical", group_topology(o, topology).hosts);
}

/// What only train_dlrm and train_dcn have.
nlohmann::json click_json(const Options& o, const sw::Topology& topology) {
    std::vector<std::int32_t> most;
    for (const sw::BagSizes& bags : o.bags)
        most.push_back(bags.largest);
    const bool generated = o.data.empty();
    const bool modules = o.policies.tower != "pass";
    const bool dcn = o.model == "dcn";
    return {{"test", o.test},
            {"samples", where(generated, o.samples)},
            {"test_samples", where(generated, o.test_samples)},
            {"bag", where(generated, most)},
            {"feature_groups", where(generated, o.feature_groups)},
            {"bottom", joined(o.bottom)},
            {"towers", towers_json(o, topology)},
            {"tower", o.policies.tower},
            {"tower_c", where(modules, o.per_feature)},
            {"tower_p", where(modules, o.per_tower)},
            {"tower_dim", where(modules, o.tower_dim)},
            {"cross_layers", where(dcn, o.cross_layers)},
            {"cross_rank", where(dcn || o.policies.tower == "cross", o.cross_rank)}};
}

nlohmann::json rate_json(const sw::LearningRate& rate) {
    using Decay = sw::LearningRate::Decay;
    const bool decays = rate.decay != Decay::none;
    return {{"base", as_given(rate.base)},
            {"schedule", decay_name(rate.decay)},
            {"warmup", rate.warmup},
            {"decay_start", where(decays, rate.decay_start)},
            {"decay_steps", where(decays, rate.decay_steps)},
            {"decay_factor", where(rate.decay == Decay::step, as_given(rate.decay_factor))},
            {"decay_power", where(rate.decay == Decay::polynomial, as_given(rate.decay_power))},
            {"end", where(rate.decay == Decay::polynomial, as_given(rate.end))}};
}

nlohmann::json save_every_json(const std::optional<SaveEvery>& every) {
    if (!every) return {};
    return every->steps > 0 ? nlohmann::json(every->steps) : nlohmann::json(fmt::format("{}s", every->seconds));
}

}  // namespace

nlohmann::json to_json(const Options& o, const sw::Topology& topology) {
    const bool generated = o.data.empty();
    nlohmann::json all = {{"backend", o.mpi ? "mpi" : "threads"},
                          {"ranks", topology.ranks()},
                          {"hosts", topology.hosts},
                          {"deadline", o.deadline_seconds},
                          {"seed", o.seed},
                          {"steps", o.steps ? nlohmann::json(*o.steps) : nlohmann::json()},
                          {"epochs", o.epochs},
                          {"batch", o.batch},
                          {"data", o.data},
                          {"schema", o.schema},
                          {"zipf", where(generated && !(o.sequences && !o.sequences->law.empty()), o.zipf)},
                          {"data_seed", where(generated || o.sequences, o.data_seed.value_or(o.seed))},
                          {"rows", o.sequences ? std::vector{o.sequences->histories->rows} : o.rows},
                          {"dim", o.dim},
                          {"top", joined(o.top)},
                          {"sharding", o.policies.sharding},
                          {"collective", o.policies.collective},
                          {"requests", o.policies.requests},
                          {"model", o.model},
                          {"pooling", o.sequences ? o.sequences->pooling : o.policies.pooling},
                          {"optimizer", o.policies.optimizer},
                          {"order", o.policies.order},
                          {"precision", name_of(precision_of(o))},
                          {"wire", o.policies.wire},
                          {"prefetch", o.prefetch},
                          {"learning_rate", rate_json(o.learning_rate)},
                          {"measure", o.measure},
                          {"save", o.save},
                          {"save_every", save_every_json(o.save_every)},
                          {"keep", where(o.save_is_folder, o.keep)},
                          {"load", o.load}};
    all.update(groups_json(o));
    all.update(tiers_json(o));
    all.update(o.sequences ? to_json(*o.sequences, generated) : click_json(o, topology));
    return all;
}

}  // namespace train_dlrm
