// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A training step of one table whose rows are looked up by a law, under Row, Flex, two and three tiers; as sequences
// and as sums. The tiers' plan is FlexShard's. Ranks are threads of this process, or under mpirun its processes. Bytes
// are those of all ranks a step (payload), memory is a rank's; a step is timed on rank 0. All four are there at once
// and step in turn: of_row and forward_of_row are ratios of medians.
//
//   bench_rows [--law=LAW] [--hosts=2] [--ranks=8] [--batch=4096] [--dim=64] [--plan_hosts=4] [--plan_ranks=32]
//              [--steps=15] [--quick=1] [--benchmark_filter=...] [--benchmark_format=json]
//   mpirun -n 8 bench_rows --hosts=2

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "shardwise/comm/all_reduce.hpp"
#include "shardwise/comm/counting.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/data/keyed_random.hpp"
#include "shardwise/data/row_sampler.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/planning/flexshard.hpp"
#include "shardwise/planning/merged_rows.hpp"
#include "shardwise/planning/row_law.hpp"
#include "shardwise/planning/row_plans.hpp"
#include "support.hpp"
#if SHARDWISE_WITH_MPI
#include "shardwise/comm/mpi.hpp"
#endif

namespace {

namespace sw = shardwise;
using shardwise_bench::Times;

/// What the command line says.
struct Setup {
    // One row in a hundred of the paper's RM-1, and so of its look-ups.
    std::string law = "slopes:300000:1001:3462:12844:0.00128173828125:0.643688:1.087021:1.081441:1.025404";
    int hosts = 2;
    int ranks = 8;
    int plan_hosts = 4;
    int plan_ranks = 32;
    std::int64_t batch = 4096;
    int dim = 64;
};

/// A way to place the rows.
struct Way {
    const char* name;
    std::vector<std::string> shardings;
    bool dp = false;
    bool flex = false;
};
const std::array<Way, 4> ways{{{"row", {"row"}},
                               {"flex", {"flex"}},
                               {"tiers2", {"dp", "row"}, true, false},
                               {"tiers3", {"dp", "flex", "row"}, true, true}}};

/// What is measured on one rank, summed over all of them.
struct Sums {
    double host = 0;
    double cross_host = 0;
    double last_tier = 0;  ///< payload that the last tier's plan packed
    double looked_up = 0;  ///< rows
    double static_bytes = 0;
    double peak_bytes = 0;
    double predicted_peak = 0;

    [[nodiscard]] std::array<double, 7> values() const {
        return {host, cross_host, last_tier, looked_up, static_bytes, peak_bytes, predicted_peak};
    }
};
struct Measured {
    Times forward;
    Times step;
    Sums sums;
    double coverage = 0;  ///< of all tiers but the last, as planned
};

sw::RowPlan plan_of(const Setup& setup, const sw::RowDistribution& rows, const Way& way, double& coverage) {
    const sw::Scaling scaling{.topology = sw::Topology::of(setup.plan_ranks, setup.plan_hosts), .batch = setup.batch};
    const sw::MergedRows merged{{{.name = "items", .distribution = rows, .dim = setup.dim}}, 1};
    const sw::FlexShardOptions options{.flex = way.flex, .cut = sw::FlexShardCut::flex};
    const sw::FlexShardPlan plan = sw::plan_flexshard(merged, scaling, sw::paper_row_memory(scaling), options);
    coverage = 1.0 - plan.tables[0].row.lookups / rows.lookups();
    const sw::Scaling here{.topology = sw::Topology::of(setup.ranks, setup.hosts), .batch = setup.batch};
    return sw::plan_in_order(merged, plan, options, here);
}

/// A rank's batch: bags of the two lengths next to the law's mean.
sw::JaggedBatch<std::int64_t> draw(const Setup& setup, const sw::RowDistribution& rows, const sw::RowSampler& sampler,
                                   int rank, int number) {
    sw::KeyedRandom random{7, static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(number)};
    sw::JaggedBatch<std::int64_t> batch;
    batch.samples = setup.batch;
    batch.features = 1;
    const auto ids =
        std::max<std::int64_t>(setup.batch, std::llround(rows.lookups() * static_cast<double>(setup.batch)));
    for (std::int64_t i = 0; i < setup.batch; ++i)
        batch.lengths.push_back(static_cast<std::int32_t>((i + 1) * ids / setup.batch - i * ids / setup.batch));
    for (std::int64_t i = 0; i < ids; ++i)
        batch.values.push_back(sampler(random));
    return batch;
}

/// A layer that places rows one way, on one rank.
class Layer {
  public:
    Layer(sw::CommunicatorRef& comm, const Setup& setup, const Way& way, bool sequences)
        : sequences_{sequences}, comm_{comm} {
        const sw::RowDistribution rows = sw::row_law(setup.law);
        const sw::RowSampler sampler{rows};
        const bool tiered = way.shardings.size() > 1;
        sw::RowPlan plan;
        if (tiered) plan = plan_of(setup, rows, way, measured_.coverage);
        layer_ = sw::make_layer(comm_, {{.name = "items", .rows = rows.rows(), .dim = setup.dim}},
                                {.shardings = way.shardings, .tiered = tiered, .pooling = sequences ? "none" : "sum"},
                                {.rows = tiered ? &plan : nullptr});
        for (int rank = 0; rank < comm.size(); ++rank)
            for (int i = 0; i < count; ++i)
                batches_.push_back(draw(setup, rows, sampler, rank, i));
        std::size_t longest = 0;
        for (const auto& batch : batches_)
            longest = std::max(longest, batch.values.size());
        gradient_.assign(
            (sequences ? longest : static_cast<std::size_t>(setup.batch)) * static_cast<std::size_t>(setup.dim), 1e-3F);
    }

    /// Takes a step; the first one allocates and is not counted.
    void step() {
        const auto& batch = at(comm_.rank(), step_++ % count);
        double forward = 0;
        const double all = shardwise_bench::seconds([&] {
            auto flight = layer_->start(batch.view());
            sw::LayerVectors vectors;
            forward = shardwise_bench::seconds([&] { vectors = layer_->forward(flight); });
            const sw::MatrixView<const float> of = sequences_ ? vectors.sequences[0] : vectors.pooled;
            const sw::MatrixView<const float> learnt{gradient_.data(), of.rows(), of.columns(), of.columns()};
            layer_->backward(std::move(flight), sequences_ ? sw::LayerVectors{.sequences = {&learnt, 1}}
                                                           : sw::LayerVectors{.pooled = learnt});
        });
        if (step_ == 1) {
            before_ = sent();
            return;
        }
        measured_.forward.add(forward);
        measured_.step.add(all);
    }

    /// What was measured, of all ranks. Collective.
    [[nodiscard]] Measured measured() {
        const Sent after = sent();
        const auto of_step = [&](std::int64_t Sent::*what) {
            return static_cast<double>(after.*what - before_.*what) / (step_ - 1);
        };
        sw::MemoryTally tally;
        for (int i = 0; i < std::min(step_, count); ++i) {  // what a flight carries, batch after batch
            std::vector<sw::JaggedView<std::int64_t>> views;
            for (int rank = 0; rank < comm_.size(); ++rank)
                views.push_back(at(rank, i).view());
            static_cast<void>(layer_->predict_cost(views, &tally));
        }
        std::array<double, 7> sums{of_step(&Sent::host),
                                   of_step(&Sent::cross_host),
                                   of_step(&Sent::last_tier),
                                   of_step(&Sent::looked_up),
                                   static_cast<double>(layer_->memory().static_bytes()),
                                   static_cast<double>(layer_->memory().peak_bytes()),
                                   static_cast<double>(layer_->predict_static_bytes(comm_.rank()) + tally.bytes())};
        sw::BasicTreeAllReduce<double>{comm_, comm_.topology()}(sums);
        measured_.sums = {sums[0], sums[1], sums[2], sums[3], sums[4], sums[5], sums[6]};
        return measured_;
    }

  private:
    static constexpr int count = 3;  // batches, in turn

    /// What this rank sent so far, and looked up.
    struct Sent {
        std::int64_t host = 0;
        std::int64_t cross_host = 0;
        std::int64_t last_tier = 0;
        std::int64_t looked_up = 0;
    };
    [[nodiscard]] Sent sent() {
        const sw::Traffic of_rank = comm_.sent().sent_by(comm_.rank());
        return {of_rank.host.payload, of_rank.cross_host.payload, layer_->sent_payload().back(),
                layer_->looked_up_rows().back()};
    }
    [[nodiscard]] const sw::JaggedBatch<std::int64_t>& at(int rank, int i) const {
        return batches_[static_cast<std::size_t>(rank * count + i)];
    }

    bool sequences_;
    sw::CountingCommunicator<sw::CommunicatorRef> comm_;
    std::unique_ptr<sw::LayerBase> layer_;
    std::vector<sw::JaggedBatch<std::int64_t>> batches_;  // (rank, batch)
    std::vector<float> gradient_;
    int step_ = 0;
    Sent before_;
    Measured measured_;
};

using Run = std::function<void(const std::function<void(sw::CommunicatorRef)>&)>;

/// All ways, a step of each in turn.
class AllWays {
  public:
    AllWays(const Setup& setup, Run on_all_ranks) : setup_{setup}, on_all_ranks_{std::move(on_all_ranks)} {}

    const std::array<Measured, ways.size()>& operator()(bool sequences, int steps) {
        std::array<Measured, ways.size()>& all = measured_[sequences ? 1 : 0];
        if (std::exchange(done_[sequences ? 1 : 0], true)) return all;
        on_all_ranks_([&](sw::CommunicatorRef comm) {
            std::vector<std::unique_ptr<Layer>> layers;
            for (const Way& way : ways)
                layers.push_back(std::make_unique<Layer>(comm, setup_, way, sequences));
            for (int step = 0; step <= steps; ++step)
                for (const auto& layer : layers)
                    layer->step();
            for (std::size_t i = 0; i < layers.size(); ++i) {
                Measured mine = layers[i]->measured();
                if (comm.rank() == 0) all[i] = std::move(mine);
            }
        });
        return all;
    }

  private:
    const Setup& setup_;
    Run on_all_ranks_;
    std::array<bool, 2> done_{};
    std::array<std::array<Measured, ways.size()>, 2> measured_;  // on rank 0
};

void bench(benchmark::State& state, AllWays& all_ways, const Setup& setup, std::size_t way, bool sequences) {
    const auto& all = all_ways(sequences, static_cast<int>(state.max_iterations));
    const Measured& measured = all[way];
    std::size_t at = 0;
    for ([[maybe_unused]] auto iteration : state)  // other ranks than 0 have measured nothing
        state.SetIterationTime(measured.step.all().empty() ? 1.0 : measured.step.all()[at++]);
    if (measured.step.all().empty()) return;
    const auto count = [&](const char* name, double value) { state.counters[name] = value; };
    count("median_ms", 1e3 * measured.step.median());
    count("forward_ms", 1e3 * measured.forward.median());
    count("of_row", measured.step.median() / all[0].step.median());
    count("forward_of_row", measured.forward.median() / all[0].forward.median());
    count("host_MB", measured.sums.host / 1e6);
    count("cross_host_MB", measured.sums.cross_host / 1e6);
    count("last_tier_MB", measured.sums.last_tier / 1e6);
    count("last_tier_rows", measured.sums.looked_up);
    count("coverage", measured.coverage);
    count("static_MB", measured.sums.static_bytes / setup.ranks / 1e6);
    count("peak_MB", measured.sums.peak_bytes / setup.ranks / 1e6);
    count("predicted_peak_MB", measured.sums.predicted_peak / setup.ranks / 1e6);
}

void run(int argc, char** argv, Setup& setup, const Run& on_all_ranks, bool reports) {
    if (!reports) static_cast<void>(shardwise_bench::take_argument(argc, argv, "--benchmark_out=", ""));
    const bool quick = shardwise_bench::take_number(argc, argv, "--quick=", 0) != 0;
    const auto steps = static_cast<std::int64_t>(shardwise_bench::take_number(argc, argv, "--steps=", quick ? 1 : 15));
    const shardwise_bench::Output output{
        argc, argv, "time: the median training step; of_row: over that with all rows in row; below 1 it is faster.",
        "  --law=LAW        how often rows are looked up, as plan_rows takes it\n  --hosts=N        of the ranks (2)\n "
        " --ranks=N        threads; under mpirun its processes (8)\n  --batch=N        samples of a rank (4096)\n  "
        "--dim=N          columns (64)\n  --plan_hosts=N   hosts that rows are placed for (4)\n  --plan_ranks=N   "
        "ranks that rows are placed for (32)\n  --steps=N        of each (15)\n  --quick=1        one step (0)\n"};
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) throw sw::BadInput{"see --help"};
    AllWays all_ways{setup, on_all_ranks};
    for (const bool sequences : {true, false})
        for (std::size_t way = 0; way < ways.size(); ++way)
            benchmark::RegisterBenchmark(
                (std::string{sequences ? "sequences/" : "sums/"} + ways[way].name).c_str(),
                [&, sequences, way](benchmark::State& state) { bench(state, all_ways, setup, way, sequences); })
                ->Iterations(steps)
                ->UseManualTime()
                ->Unit(benchmark::kMillisecond);
    if (!output.run(reports)) throw sw::BadInput{shardwise_bench::nothing_matches};
}

}  // namespace

int main(int argc, char** argv) {
    Setup setup;
    const auto take = [&](const char* flag, auto& number) {
        number = static_cast<std::remove_reference_t<decltype(number)>>(
            shardwise_bench::take_number(argc, argv, flag, number));
    };
    take("--hosts=", setup.hosts);
    take("--ranks=", setup.ranks);
    take("--plan_hosts=", setup.plan_hosts);
    take("--plan_ranks=", setup.plan_ranks);
    take("--batch=", setup.batch);
    take("--dim=", setup.dim);
    setup.law = shardwise_bench::take_argument(argc, argv, "--law=", setup.law);
#if SHARDWISE_WITH_MPI
    if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) {
        sw::MpiOptions options;
        options.hosts = setup.hosts;
        return sw::run_mpi(options, [&](sw::MpiCommunicator& comm) {
            setup.ranks = comm.size();
            run(
                argc, argv, setup, [&](const auto& body) { body(comm); }, comm.rank() == 0);
        });
    }
#endif
    try {
        run(
            argc, argv, setup,
            [&](const auto& body) {
                sw::ThreadWorld world{sw::Topology::of(setup.ranks, setup.hosts)};
                world.run([&](sw::ThreadCommunicator& comm) { body(comm); });
            },
            true);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 2;
    }
}
