// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "options.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "shardwise/core/error.hpp"
#include "shardwise/topology/topology.hpp"

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

/// Asks whether a run can write `path` when it ends, and makes no file. All ranks of a job ask at once.
void check_writable(const std::string& path, bool replaced) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    const fs::path folder = fs::path{path}.parent_path();
    const bool may_make = access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) == 0;
    const bool there = access(path.c_str(), F_OK) == 0;
    const bool may_write = there ? access(path.c_str(), W_OK) == 0 : errno == ENOENT && may_make;
    if (!may_write || fs::is_directory(path, ignored) || (replaced && !may_make))
        throw sw::BadInput{path + ": cannot be written"};
    if (replaced && there && !fs::is_regular_file(path, ignored))
        throw sw::BadInput{path + ": cannot be replaced, it is no regular file"};
}

void check(const Options& o) {
    at_least("--batch", o.batch, std::int64_t{1});
    at_least("--epochs", o.epochs, 0);
    at_least("--steps", o.steps.value_or(0), std::int64_t{0});
    at_least("--samples", o.samples, std::int64_t{1});
    at_least("--test-samples", o.test_samples, std::int64_t{0});
    at_least("--bag", o.bag, 1);
    at_least("--dim", o.dim, 1);
    at_least("--towers", o.towers, 0);
    at_least("--measure", o.measure, std::int64_t{0});
    at_least("--lr-warmup", o.learning_rate.warmup, std::int64_t{0});
    at_least("--lr-decay-steps", o.learning_rate.decay_steps, std::int64_t{1});
    if (!(o.deadline_seconds > 0 && o.deadline_seconds <= 3e7))
        throw sw::BadInput{fmt::format("--deadline {}: give a number of seconds above 0, and at most 3e7, a year",
                                       o.deadline_seconds)};
    constexpr std::int64_t most_samples = std::numeric_limits<std::int32_t>::max() / categories;
    if (o.batch > most_samples)
        throw sw::BadInput{fmt::format("--batch {}: give at most {} samples a rank and step", o.batch, most_samples)};
    if (!(o.learning_rate.base > 0) || !std::isfinite(o.learning_rate.base))
        throw sw::BadInput{fmt::format("--learning-rate {}: give a number above 0", o.learning_rate.base)};
    if (o.rows.size() != 1 && o.rows.size() != categories)
        throw sw::BadInput{
            fmt::format("--rows: {} numbers; give one for all features, or {}", o.rows.size(), categories)};
    if (!o.test.empty() && o.data.empty()) throw sw::BadInput{"--test without --data: give the files to train on, too"};
    check_policies(o.policies);
    for (const std::string* path : {&o.json, &o.trace, &o.save})
        if (!path->empty()) check_writable(*path, path == &o.save);
    if (!o.load.empty() && !std::ifstream{o.load}) throw sw::BadInput{o.load + ": cannot be read"};
}

}  // namespace

std::optional<Options> parse_options(int argc, const char* const* argv, std::string& text) {
    Options o;
    std::string rows = "5000";
    std::string bottom;
    std::string top = joined(o.top);
    std::string decay = "constant";
    std::int64_t steps = 0;
    int ranks = 0;

    CLI::App app{
        "Trains a deep learning recommendation model (DLRM) on Criteo click logs, or on generated clicks.\n"
        "Ranks are threads of this process, or, under mpirun, the processes of the job.\n"
        "Exit status: 0 done; 2 bad usage or bad input; 3 a peer failed or a deadline passed.",
        "train_dlrm"};
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
    app.add_option("--seed", o.seed, "Of the initial weights and of generated data")->group(amount);
    auto* steps_option = app.add_option("--steps", steps,
                                        "Steps in all, those of a loaded checkpoint included; 0 trains nothing. Unless "
                                        "given: all batches of all epochs")
                             ->default_str("")
                             ->group(amount);
    app.add_option("--epochs", o.epochs, "Passes over the training data")->group(amount);
    app.add_option("--batch", o.batch, "Samples a rank and step")->group(amount);

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
    app.add_option("--samples", o.samples, "Generated samples an epoch")->group(data);
    app.add_option("--test-samples", o.test_samples, "Generated samples to test on")->group(data);
    app.add_option("--zipf", o.zipf, "Exponent of the power law of generated ids")->group(data);
    app.add_option("--bag", o.bag, "Generated ids a feature and sample: 1, or from 0 to this number")->group(data);

    const char* model = "Model";
    app.add_option("--rows", rows, "Rows a feature: one number for all, or 26 with commas between them")->group(model);
    app.add_option("--dim", o.dim, "Columns of every table")->group(model);
    app.add_option("--bottom", bottom, "Widths of the bottom MLP; the last is --dim. Unless given: 64-<dim>")
        ->default_str("")
        ->group(model);
    app.add_option("--top", top, "Widths of the top MLP; the last is 1")->group(model);

    const char* policies = "Policies";
    Policies& p = o.policies;
    app.add_option("--sharding", p.sharding, axis_help("sharding"))->group(policies);
    app.add_option("--collective", p.collective, axis_help("collective"))->group(policies);
    app.add_option("--towers", o.towers,
                   "Number of towers that the tables are placed in, in turn; divides the hosts. Unless given: with "
                   "--collective hierarchical one a host, otherwise none")
        ->default_str("")
        ->group(policies);
    app.add_option("--pooling", p.pooling, axis_help("pooling"))->group(policies);
    app.add_option("--optimizer", p.optimizer, axis_help("optimizer"))->group(policies);
    app.add_option("--order", p.order, axis_help("order"))->group(policies);
    app.add_option("--wire", p.wire, axis_help("wire"))->group(policies);
    app.add_flag("--prefetch,!--no-prefetch", o.prefetch,
                 "Send the ids of the next batch while this one computes; the same results either way")
        ->group(policies);

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
    app.add_option("--save", o.save, "Checkpoint of the last step, whichever epoch was the best (safetensors)")
        ->default_str("")
        ->group(output);
    app.add_option("--load", o.load, "Checkpoint to go on from, of any sharding and number of ranks")
        ->default_str("")
        ->group(output);

    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        text = app.help();
        return std::nullopt;
    } catch (const CLI::ParseError& error) {
        throw sw::BadInput{std::string{error.what()} + " (train_dlrm --help shows all options)"};
    }

    for (const char* flag : {"--samples", "--test-samples", "--zipf", "--bag"})
        if (!o.data.empty() && app.get_option(flag)->count() != 0)
            throw sw::BadInput{fmt::format(
                "{} has no effect with --data: it is for generated clicks; leave one of the two away", flag)};
    if (steps_option->count() != 0) o.steps = steps;
    if (o.explain && !o.steps && app.get_option("--epochs")->count() == 0) o.steps = 0;
    o.learning_rate.decay = parse_decay(decay);
    o.rows = parse_numbers("--rows", rows, ',', "5000 or 26 numbers with commas between them");
    o.bottom = parse_numbers("--bottom", bottom.empty() ? fmt::format("64-{}", o.dim) : bottom, '-', "64-16");
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
                fmt::format("--ranks {} in a job of {} processes: leave it away under mpirun", ranks, job)};
    } else if (ranks_given) {
        o.ranks = ranks;
    }
    if (hosts->count() != 0) {
        static_cast<void>(sw::Topology::of(o.ranks, o.hosts));
    } else if (!o.mpi) {
        o.hosts = o.ranks % 2 == 0 && o.ranks > 0 ? 2 : 1;
        static_cast<void>(sw::Topology::of(o.ranks, o.hosts));
    }
    check(o);
    return o;
}

std::vector<sw::TableConfig> tables_of(const Options& o) {
    static constexpr const char* turns[] = {"dp", "table", "row"};  // Mixed: one after the other
    std::vector<sw::TableConfig> tables;
    for (int f = 0; f < categories; ++f)
        tables.push_back({.name = fmt::format("C{}", f + 1),
                          .rows = o.rows[o.rows.size() == 1 ? 0 : static_cast<std::size_t>(f)],
                          .dim = o.dim,
                          .features = {},
                          .sharding = o.policies.sharding == "mixed" ? turns[f % 3] : ""});
    return tables;
}

nlohmann::json to_json(const Options& o, const sw::Topology& topology) {
    const sw::LearningRate& rate = o.learning_rate;
    return {{"backend", o.mpi ? "mpi" : "threads"},
            {"ranks", topology.ranks()},
            {"hosts", topology.hosts},
            {"seed", o.seed},
            {"epochs", o.epochs},
            {"batch", o.batch},
            {"data", o.data},
            {"test", o.test},
            {"samples", o.samples},
            {"test_samples", o.test_samples},
            {"zipf", o.zipf},
            {"bag", o.bag},
            {"rows", o.rows},
            {"dim", o.dim},
            {"bottom", joined(o.bottom)},
            {"top", joined(o.top)},
            {"sharding", o.policies.sharding},
            {"collective", o.policies.collective},
            {"towers", o.towers},
            {"pooling", o.policies.pooling},
            {"optimizer", o.policies.optimizer},
            {"order", o.policies.order},
            {"wire", o.policies.wire},
            {"prefetch", o.prefetch},
            {"learning_rate",
             {{"base", rate.base},
              {"schedule", decay_name(rate.decay)},
              {"warmup", rate.warmup},
              {"decay_start", rate.decay_start},
              {"decay_steps", rate.decay_steps},
              {"decay_factor", rate.decay_factor},
              {"decay_power", rate.decay_power},
              {"end", rate.end}}},
            {"load", o.load}};
}

}  // namespace train_dlrm
