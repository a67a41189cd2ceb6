// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "ftrl.hpp"
#include "row_ranges.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/data/generator.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/plan/describe.hpp"

/// \file
/// An optimizer and a sharding policy of the user's own, composed into an embedding layer like any other.

namespace {

namespace sw = shardwise;

using Layer = sw::EmbeddingLayer<sw::Sharding<extending::RowRanges>, sw::Optimizer<extending::Ftrl>>;

struct Options {
    int ranks = 4;
    int hosts = 0;
    std::uint64_t seed = 1;
    std::int64_t steps = 200;
    std::int64_t batch = 64;
    bool explain = false;
};

/// The smallest click model: the logit is the sum of the looked-up numbers, so tables have one column.
void train(const Options& o, sw::ThreadCommunicator& comm) {
    const std::vector<sw::TableConfig> tables{{"user", 2000, 1, {}, ""}, {"item", 500, 1, {}, ""}};
    sw::GeneratorOptions data;
    data.rows = {2000, 500};
    data.dense_columns = 0;
    data.seed = o.seed;
    data.slice = {.batch = o.batch, .rank = comm.rank(), .ranks = comm.size()};
    sw::ClickGenerator generator{data};
    Layer layer{comm, tables, {.learning_rate = {.base = 0.02F}, .seed = o.seed}, {.l1 = 0.0F}};
    if (o.explain && comm.rank() == 0) fmt::print("{}\n", sw::describe(layer.program()));

    sw::ClickBatch batch;
    std::vector<float> gradient;
    double loss = 0;
    for (std::int64_t step = 1; step <= o.steps; ++step) {
        generator.next(batch);
        const sw::MatrixView<const float> out = layer.forward(batch.ids.view());
        gradient.resize(static_cast<std::size_t>(out.rows() * out.columns()));
        for (std::int64_t i = 0; i < out.rows(); ++i) {
            const double logit = -1.0 + out(i, 0) + out(i, 1);
            const double label = batch.labels[static_cast<std::size_t>(i)];
            const double predicted = 1 / (1 + std::exp(-logit));
            loss -= std::log(label > 0 ? predicted : 1 - predicted);
            for (std::int64_t column = 0; column < 2; ++column)
                gradient[static_cast<std::size_t>(2 * i + column)] =
                    static_cast<float>((predicted - label) / static_cast<double>(o.batch * comm.size()));
        }
        layer.backward(sw::MatrixView<const float>{gradient.data(), out.rows(), out.columns()});
        if (comm.rank() == 0 && step % (o.steps / 10 > 0 ? o.steps / 10 : 1) == 0) {
            fmt::print("step {:>5}   mean loss of rank 0 so far {:.4f}\n", step,
                       loss / static_cast<double>(step * o.batch));
            std::fflush(stdout);
        }
    }
}

int run(int argc, char** argv) {
    Options o;
    CLI::App app{
        "Trains with an optimizer (ftrl.hpp) and a sharding policy (row_ranges.hpp) that are no part of the "
        "library. Ranks are threads.",
        "extending"};
    app.option_defaults()->always_capture_default();
    app.add_option("--ranks", o.ranks, "Number of ranks");
    app.add_option("--hosts", o.hosts,
                   "Number of hosts, of which the ranks pretend to be; divides the ranks. Unless "
                   "given: 2 where that divides the ranks, else 1")
        ->default_str("");
    app.add_option("--seed", o.seed, "Of weights and data");
    app.add_option("--steps", o.steps, "Training steps")->check(CLI::NonNegativeNumber);
    app.add_option("--batch", o.batch, "Samples a rank and step")->check(CLI::PositiveNumber);
    app.add_flag("--explain", o.explain, "Show the plan, forward and derived backward");
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        fmt::print("{}", app.help());
        return 0;
    } catch (const CLI::ParseError& error) {
        throw sw::BadInput{error.what()};
    }
    if (app.get_option("--hosts")->count() == 0) o.hosts = o.ranks % 2 == 0 ? 2 : 1;
    sw::ThreadWorld world{sw::Topology::of(o.ranks, o.hosts)};
    world.run([&](sw::ThreadCommunicator& comm) { train(o, comm); });
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const sw::Error& error) {
        std::fprintf(stderr, "extending: %s\n", error.what());
        return error.exit_status();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "extending: %s\n", error.what());
        return 3;
    }
}
