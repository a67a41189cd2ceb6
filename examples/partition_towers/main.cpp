// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "data.hpp"
#include "evaluation.hpp"
#include "model.hpp"
#include "options.hpp"
#include "output_files.hpp"
#include "picture.hpp"
#include "progress.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/data/generator.hpp"
#include "shardwise/sharding/towers.hpp"
#include "shardwise/tower/affinity.hpp"
#include "shardwise/tower/partition.hpp"
#include "shardwise/tower/rand_index.hpp"
#include "shardwise/tower/tower_file.hpp"

/// \file
/// Which features live together: trains a model without towers for a moment, measures how much its features have to do
/// with each other, and partitions them.

namespace {

namespace sw = shardwise;
using partition_towers::picture;
using train_dlrm::Options;

struct Arguments {
    Options model;
    std::int64_t steps = 400;
    int towers = 2;
    double ratio = 1.0;
    std::string strategy = "both";
    int trainings = 3;  // with the towers of each strategy
    std::string affinity;
    std::string save_affinity;
    std::string out = "towers.json";
    std::string svg = "towers.svg";
};

struct Trained {
    double auc = 0;  ///< of the test data; without any, of the last quarter's samples, before it learns from them
    std::int64_t passes = 1;  ///< over the training data, begun
    bool known = false;       ///< some of these samples were learnt from in an earlier pass
};

/// Trains `o.steps` steps on the ranks of `comm`. \param meter  sees the features' vectors of the last quarter of them
Trained train(const Options& o, sw::CommunicatorRef comm, sw::AffinityMeter* meter) {
    Trained trained;
    train_dlrm::Model model{o, comm};
    const auto training = train_dlrm::training_data(o, comm.rank(), comm.size());
    train_dlrm::Batches batches{comm, *training, train_dlrm::dense_features, train_dlrm::categories};
    train_dlrm::RunningQuality quality;
    const std::int64_t steps = o.steps.value_or(0);
    train_dlrm::Progress progress{comm, static_cast<double>(steps)};
    sw::ClickBatch batch;
    for (std::int64_t step = 0; step < steps; ++step) {
        batches.note(progress.due() ? 1 : 0);  // all ranks come to show() behind the same step
        batches.announce(batch);
        std::int64_t samples = batches.global_samples();
        if (batches.failed()) batches.fail();
        if (samples == 0) {
            batches.rewind();
            ++trained.passes;
            batches.announce(batch);
            samples = batches.global_samples();
            if (batches.failed()) batches.fail();
            if (samples == 0) throw sw::BadInput{"there is no sample to train on"};
        }
        model.start(batch);
        const std::span<const float> logits = model.forward(batch);
        if (4 * (step + 1) > 3 * steps) {
            if (meter != nullptr) meter->add(model.vectors());
            quality.add(logits, batch.labels);
        }
        const double loss = model.learn(batch, logits, {.world = samples, .group = samples});
        progress.step(step + 1, samples, loss);
        if (batches.notes() != 0) progress.show();
    }
    progress.done();
    const auto test = train_dlrm::test_data(o, comm.rank(), comm.size());
    if (test == nullptr) {
        trained.auc = quality.value(comm).auc;
        trained.known = trained.passes > 1;
    } else {
        train_dlrm::Batches test_batches{comm, *test, train_dlrm::dense_features, train_dlrm::categories};
        trained.auc = train_dlrm::evaluate(model, test_batches, comm, false).auc;
    }
    return trained;
}

/// What is to be said of an AUC.
std::string caveat(const Options& o, bool known) {
    if (!known) return "";
    return fmt::format(", of samples that it has learnt from: give --{}", o.data.empty() ? "test-samples" : "test");
}

sw::Affinity read_affinity(const std::string& path) {
    std::ifstream file{path};
    if (!file) throw sw::BadInput{path + ": cannot be read"};
    const nlohmann::json all = nlohmann::json::parse(file, nullptr, false);
    const auto wrong = [&] {
        return sw::BadInput{path + ": is no affinity; --save-affinity writes {\"affinity\": a list of rows}"};
    };
    if (!all.is_object() || !all.contains("affinity") || !all["affinity"].is_array()) throw wrong();
    sw::Affinity affinity{.features = static_cast<std::int64_t>(all["affinity"].size()), .values = {}};
    for (const nlohmann::json& row : all["affinity"]) {
        if (!row.is_array() || row.size() != all["affinity"].size()) throw wrong();
        for (const nlohmann::json& value : row) {
            if (!value.is_number()) throw wrong();
            affinity.values.push_back(value.get<double>());
        }
    }
    if (affinity.features != train_dlrm::categories)
        throw sw::BadInput{
            fmt::format("{}: has {} features, and the model {}", path, affinity.features, train_dlrm::categories)};
    return affinity;
}

/// The mean over samples of the absolute cosines, from a model without towers.
sw::Affinity measure(const Arguments& a) {
    std::optional<sw::Affinity> result;
    sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = sw::Topology::of(a.model.ranks, a.model.hosts)}};
    world.run([&](sw::ThreadCommunicator& comm) {
        sw::AffinityMeter meter{train_dlrm::categories, a.model.dim};
        const Trained trained = train(a.model, comm, &meter);
        sw::BasicTreeAllReduce<double> add{comm};
        add(meter.sums());
        if (comm.rank() != 0) return;
        result = meter.affinity();
        fmt::print("without towers: AUC {:.4f} after {} steps, in pass {} over the data{}\n", trained.auc, a.steps,
                   trained.passes, caveat(a.model, trained.known));
    });
    return *result;
}

sw::Towers named(const sw::Partition& partition, const std::vector<std::string>& names, int towers) {
    sw::Towers all(static_cast<std::size_t>(towers));
    for (std::size_t f = 0; f < names.size(); ++f)
        all[static_cast<std::size_t>(partition.tower_of[f])].push_back(names[f]);
    return all;
}

/// The AUCs of several trainings that differ in the seed of their weights, in the order of the seeds.
struct Aucs {
    std::vector<double> all;
    bool known = false;  ///< see Trained

    [[nodiscard]] double median() const {
        std::vector<double> sorted = all;
        std::sort(sorted.begin(), sorted.end());
        const std::size_t half = sorted.size() / 2;
        return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
    }
    /// In how many trainings these are above the others, of the same seeds.
    [[nodiscard]] int above(const Aucs& others) const {
        int count = 0;
        for (std::size_t i = 0; i < all.size(); ++i)
            count += all[i] > others.all[i] ? 1 : 0;
        return count;
    }
};

/// Trains a model with these towers whose modules halve what crosses hosts, each tower one rank.
/// \throws BadInput when an AUC is not a number
Aucs train_towered(const Arguments& a, const sw::Towers& towers) {
    Options o = a.model;
    o.data_seed = a.model.data_seed.value_or(a.model.seed);
    const auto samples = o.batch * o.ranks;
    o.ranks = o.hosts = a.towers;
    o.batch = std::max<std::int64_t>(1, samples / a.towers);
    o.towers = towers;
    o.policies.collective = "hierarchical";
    o.policies.tower = "dot";
    o.per_feature = 1;
    o.tower_dim = std::max(1, o.dim / 2);
    o.bottom = {64, o.tower_dim};
    Aucs aucs;
    for (int i = 0; i < a.trainings; ++i, ++o.seed) {
        sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = sw::Topology::of(o.ranks, o.hosts)}};
        Trained trained;
        world.run([&](sw::ThreadCommunicator& comm) {
            const Trained mine = train(o, comm, nullptr);
            if (comm.rank() == 0) trained = mine;
        });
        if (std::isnan(trained.auc))
            throw sw::BadInput{
                fmt::format("training with towers: after {} steps the AUC is not a number: the samples that it "
                            "is tested on have one label only, or the model has diverged; give more samples "
                            "to test on, or a lower --learning-rate",
                            a.steps)};
        aucs.all.push_back(trained.auc);
        aucs.known |= trained.known;
    }
    return aucs;
}

struct Candidate {
    std::string strategy;
    sw::Partition partition;
    sw::Towers towers;
    std::optional<Aucs> aucs;
    std::optional<double> rand_index;  ///< against the groups of generated features
};

void report(const Options& o, const Candidate& c) {
    std::vector<std::size_t> sizes;
    for (const auto& tower : c.towers)
        sizes.push_back(tower.size());
    fmt::print("{:<9} stress {:.4f}, spread {:.4f}, sizes {}{}{}\n", c.strategy, c.partition.stress, c.partition.spread,
               fmt::join(sizes, " "),
               c.aucs ? fmt::format(", AUC {:.4f} with modules that halve vectors ({:.4f}){}", c.aucs->median(),
                                    fmt::join(c.aucs->all, " "), caveat(o, c.aucs->known))
                      : "",
               c.rand_index ? fmt::format(", adjusted Rand index {:.2f} against the groups", *c.rand_index) : "");
    std::fflush(stdout);
}

/// (feature): its group in generated data.
std::vector<int> groups_of(const Options& o) {
    const sw::ClickGenerator generator{{.rows = std::vector<std::int64_t>(train_dlrm::categories, o.rows.front()),
                                        .groups = o.feature_groups,
                                        .seed = o.data_seed.value_or(o.seed)}};
    return {generator.groups().begin(), generator.groups().end()};
}

int run(const Arguments& a) {
    std::vector<std::string> names;
    for (const sw::TableConfig& table : train_dlrm::tables_of(a.model)) {
        names.push_back(table.name);
    }
    const sw::Affinity affinity = a.affinity.empty() ? measure(a) : read_affinity(a.affinity);
    if (!a.save_affinity.empty()) {
        nlohmann::json rows = nlohmann::json::array();
        for (std::int64_t i = 0; i < affinity.features; ++i) {
            rows.push_back(nlohmann::json::array());
            for (std::int64_t j = 0; j < affinity.features; ++j)
                rows.back().push_back(affinity(i, j));
        }
        output_files::write_text(a.save_affinity,
                                 nlohmann::json{{"features", names}, {"affinity", rows}}.dump(1) + "\n");
    }
    std::vector<Candidate> candidates;
    for (const auto strategy : {sw::TowerStrategy::coherent, sw::TowerStrategy::diverse}) {
        const std::string name = strategy == sw::TowerStrategy::coherent ? "coherent" : "diverse";
        if (a.strategy != "both" && a.strategy != name) continue;
        Candidate& c = candidates.emplace_back();
        c.strategy = name;
        c.partition = sw::partition_features(
            affinity, {.towers = a.towers, .ratio = a.ratio, .strategy = strategy, .seed = a.model.seed});
        c.towers = named(c.partition, names, a.towers);
        if (a.model.feature_groups != 0)
            c.rand_index = sw::adjusted_rand_index(c.partition.tower_of, groups_of(a.model));
        if (a.strategy == "both") c.aucs = train_towered(a, c.towers);
        if (!c.partition.within_ratio)
            fmt::print("no split into {} towers keeps to R = {}: sizes are as equal as may be\n", a.towers, a.ratio);
        report(a.model, c);
    }
    const auto better = std::max_element(candidates.begin(), candidates.end(), [](const auto& x, const auto& y) {
        return x.aucs && y.aucs && x.aucs->median() < y.aucs->median();
    });
    if (a.strategy == "both") {
        const Candidate& other = better == candidates.begin() ? candidates.back() : candidates.front();
        const int above = better->aucs->above(*other.aucs);
        fmt::print("{} is above in {} of {} trainings{}\n", better->strategy, above, a.trainings,
                   above < a.trainings ? ": more --trainings would tell more surely which is better" : "");
    }
    nlohmann::json more{{"strategy", better->strategy},
                        {"ratio", a.ratio},
                        {"stress", better->partition.stress},
                        {"spread", better->partition.spread}};
    if (better->aucs) more["aucs"] = better->aucs->all;
    if (better->rand_index) more["adjusted_rand_index"] = *better->rand_index;
    sw::write_towers(a.out, better->towers, more);
    output_files::write_text(a.svg,
                             picture(better->partition, names,
                                     fmt::format("{} towers, {}: features in the plane", a.towers, better->strategy)));
    fmt::print("{}: the {} towers; {}: where the features lie\n", a.out, better->strategy, a.svg);
    return 0;
}

std::optional<Arguments> parse(int argc, char** argv) {
    Arguments a;
    Options& o = a.model;
    std::int64_t rows = 5000;
    int ranks = 2;
    o.learning_rate.base = 0.005F;
    CLI::App app{
        "Partitions the features of a model into towers by how much they have to do with each other.\n"
        "Trains DLRM without towers for some steps, measures the affinity of its features, and writes a tower file "
        "for\n"
        "train_dlrm and train_dcn --towers, with a picture. With --strategy both it trains with the towers of each\n"
        "strategy, and keeps those with the higher median AUC.\n"
        "Exit status: 0 done; 2 bad usage or bad input; 3 a peer failed or a deadline passed.",
        "partition_towers"};
    app.option_defaults()->always_capture_default();
    app.add_option("--towers", a.towers, "Number of towers");
    app.add_option("--ratio", a.ratio, "The largest tower has at most so many times as much as the smallest (R)");
    app.add_option(
        "--strategy", a.strategy,
        "coherent (alike together), diverse (unlike together) or both. With --affinity, unless given: coherent");
    app.add_option(
        "--trainings", a.trainings,
        "With --strategy both: trainings with the towers of each strategy, whose weights have the seeds --seed, "
        "--seed + 1, ...");
    app.add_option("--affinity", a.affinity, "Affinities to read instead of training without towers")->default_str("");
    app.add_option("--save-affinity", a.save_affinity, "File for the affinities (JSON)")->default_str("");
    app.add_option("--out", a.out, "File for the towers (JSON)");
    app.add_option("--svg", a.svg, "File for the picture (SVG)");
    app.add_option("--data", o.data, "Files to train on, as of train_dlrm. Unless given, clicks are generated");
    app.add_option("--test", o.test, "Files to test on. Unless given, the AUC is of training samples");
    app.add_option("--samples", o.samples, "Generated samples");
    app.add_option("--test-samples", o.test_samples, "Generated samples to test on");
    app.add_option("--zipf", o.zipf, "Exponent of the power law of generated ids");
    app.add_option("--rows", rows, "Rows a feature");
    app.add_option("--dim", o.dim, "Columns of every table");
    app.add_option("--steps", a.steps, "Steps of each training");
    app.add_option("--batch", o.batch, "Samples a rank and step");
    app.add_option("--learning-rate", o.learning_rate.base, "Of tables and dense weights");
    app.add_option("--seed", o.seed, "Of weights and partitions, and of generated data unless --data-seed is given");
    app.add_option("--data-seed", o.data_seed, "Of generated data. Unless given: --seed")->default_str("");
    app.add_option("--feature-groups", o.feature_groups,
                   "Generated features belong together in so many groups, as in train_dlrm");
    app.add_option("--ranks", ranks, "Ranks (threads) of the training without towers");
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        fmt::print("{}", app.help());
        return std::nullopt;
    } catch (const CLI::ParseError& error) {
        throw sw::BadInput{std::string{error.what()} + " (partition_towers --help shows all options)"};
    }
    if (a.strategy != "coherent" && a.strategy != "diverse" && a.strategy != "both")
        throw sw::BadInput{fmt::format("--strategy '{}': give one of coherent, diverse, both", a.strategy)};
    for (const std::string* path : {&a.out, &a.svg, &a.save_affinity})
        if (!path->empty()) output_files::check_writable(*path, false);
    if (!a.affinity.empty() && a.strategy == "both" && app.get_option("--strategy")->count() == 0)
        a.strategy = "coherent";
    if (a.towers < 1 || a.towers > train_dlrm::categories)
        throw sw::BadInput{fmt::format("--towers {}: give 1 to {}", a.towers, train_dlrm::categories)};
    for (const auto& [flag, value] : {std::pair{"--steps", a.steps}, std::pair{"--batch", o.batch},
                                      std::pair{"--rows", rows}, std::pair<const char*, std::int64_t>{"--dim", o.dim},
                                      std::pair<const char*, std::int64_t>{"--trainings", a.trainings}})
        if (value < 1) throw sw::BadInput{fmt::format("{} {}: give at least 1", flag, value)};
    if (!(a.ratio >= 1.0)) throw sw::BadInput{fmt::format("--ratio {}: give at least 1", a.ratio)};
    for (const char* flag : {"--feature-groups", "--data-seed", "--zipf", "--samples", "--test-samples"})
        if (!o.data.empty() && app.get_option(flag)->count() != 0)
            throw sw::BadInput{fmt::format(
                "{} has no effect with --data: it is for generated clicks; leave one of the two out", flag)};
    if (a.strategy != "both" && app.get_option("--trainings")->count() != 0)
        throw sw::BadInput{
            fmt::format("--trainings has no effect with one strategy, '{}': give --strategy both", a.strategy)};
    if (!o.test.empty() && o.data.empty()) throw sw::BadInput{"--test without --data: give the files to train on, too"};
    o.rows = {rows};
    o.steps = a.steps;
    o.policies.sharding = "table";
    o.policies.optimizer = "adam";
    o.policies.order = "tree";
    o.bottom = {64, o.dim};
    o.ranks = ranks;
    o.hosts = 1;
    static_cast<void>(sw::Topology::of(o.ranks, o.hosts));
    return a;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const std::optional<Arguments> arguments = parse(argc, argv);
        return arguments ? run(*arguments) : 0;
    } catch (const sw::Error& error) {
        std::fprintf(stderr, "partition_towers: %s\n", error.what());
        return error.exit_status();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "partition_towers: %s\n", error.what());
        return 3;
    }
}
