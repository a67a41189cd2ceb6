// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <boost/math/distributions/students_t.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "output_files.hpp"
#include "shardwise/comm/collectives.hpp"
#include "shardwise/plan/describe.hpp"

namespace infer_dlrm {

namespace {

using Json = nlohmann::json;

/// Of one rank, as it travels.
struct RankPart {
    double put_bytes = 0;
    double puts = 0;
    double messages = 0;
    double most_ahead = 0;
    double tables = 0;
    double dynamic = 0;
    double slots = 0;
    Stages stages;  ///< a batch, in milliseconds
    double samples = 0;
};

Json to_json(const Mean& mean) {
    return {{"mean", mean.mean}, {"interval_95", mean.interval}};
}

}  // namespace

Mean mean_of(const std::vector<double>& values) {
    const auto n = static_cast<double>(values.size());
    Mean all{.mean = std::accumulate(values.begin(), values.end(), 0.0) / n};
    if (values.size() < 2) return all;
    double squares = 0;
    for (const double value : values)
        squares += (value - all.mean) * (value - all.mean);
    const double t = boost::math::quantile(boost::math::students_t{n - 1}, 0.975);
    all.interval = t * std::sqrt(squares / (n - 1) / n);
    return all;
}

Json make_report(const Options& o, sw::CommunicatorRef comm, const Pipeline& pipeline, const std::vector<Run>& runs) {
    const auto batches = static_cast<double>(o.batches);
    std::vector<double> iterations;  // of this rank, by run
    RankPart mine;
    for (const Run& run : runs) {
        iterations.push_back(run.milliseconds / batches);
        mine.stages += run.stages;
    }
    const double all_batches = batches * static_cast<double>(runs.size());
    for (double* stage :
         {&mine.stages.delay, &mine.stages.start, &mine.stages.bottom, &mine.stages.exchange, &mine.stages.top})
        *stage /= all_batches;
    mine.put_bytes = static_cast<double>(pipeline.put().payload + pipeline.put().control);
    mine.puts = static_cast<double>(pipeline.put().messages);
    mine.messages = static_cast<double>(pipeline.messages());
    mine.most_ahead = static_cast<double>(pipeline.layer().most_ahead());
    mine.tables = static_cast<double>(pipeline.memory().static_bytes());
    mine.dynamic = static_cast<double>(pipeline.memory().dynamic_bytes());
    mine.slots = static_cast<double>(pipeline.slot_bytes());
    mine.samples = static_cast<double>(pipeline.probabilities().size());
    const auto times = sw::gather_v<double>(comm, 0, iterations);
    const auto parts = sw::gather_v<RankPart>(comm, 0, std::span{&mine, 1});
    if (comm.rank() != 0) return nullptr;

    std::vector<double> all;
    std::vector<double> throughput;  // by run: batches a second of all ranks
    for (std::size_t run = 0; run < runs.size(); ++run) {
        double sum = 0;
        for (const auto& of_rank : times) {
            all.push_back(of_rank[run]);
            sum += 1e3 / of_rank[run];
        }
        throughput.push_back(sum);
    }
    Json ranks = Json::array();
    std::vector<double> waits;
    RankPart most;
    double samples = 0;
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
        const RankPart& part = parts[rank].at(0);
        const Stages& s = part.stages;
        waits.push_back(s.delay + s.exchange);
        most.most_ahead = std::max(most.most_ahead, part.most_ahead);
        most.messages += part.messages;
        samples += part.samples;
        ranks.push_back(
            {{"rank", rank},
             {"iteration_ms", times[rank]},
             {"stages_ms",
              {{"delay", s.delay}, {"start", s.start}, {"bottom", s.bottom}, {"exchange", s.exchange}, {"top", s.top}}},
             {"bytes_per_batch", part.put_bytes / all_batches},
             {"puts_per_batch", part.puts / all_batches},
             {"memory", {{"static", part.tables}, {"dynamic", part.dynamic}, {"slots", part.slots}}}});
    }
    const double batch_samples = samples / static_cast<double>(parts.size()) / batches;
    const Mean through = mean_of(throughput);
    return {{"program", "infer_dlrm"},
            {"ranks", o.ranks},
            {"hosts", comm.topology().hosts},
            {"bound", o.bound},
            {"ids", o.ids},
            {"serve", o.ids == "sample" && o.transport != Transport::rounds ? Json(o.serve) : Json(nullptr)},
            {"progress", o.ids == "sample" && o.transport != Transport::rounds ? Json(o.progress) : Json(nullptr)},
            {"transport", name_of(o.transport)},
            {"mpi", o.mpi},
            {"delay", o.delay_text},
            {"batch", o.batch},
            {"batches", o.batches},
            {"warmup", o.warmup},
            {"runs", o.runs},
            {"seed", o.seed},
            {"data", o.data.data},
            {"skew", o.skew},
            {"load", o.load},
            {"rows", o.shape.rows()},
            {"dim", o.shape.dim()},
            {"bottom", o.shape.bottom},
            {"top", o.shape.top},
            {"sharding", o.sharding},
            {"pooling", o.pooling},
            {"wire", o.wire},
            {"iteration_ms", to_json(mean_of(all))},
            {"throughput", to_json(through)},
            {"samples_per_second", through.mean * batch_samples},
            {"delay_ms_per_batch", to_json(mean_of(waits))},
            {"lag_max", most.most_ahead},
            {"two_sided_messages", o.transport == Transport::slots ? Json(most.messages) : Json(nullptr)},
            {"by_rank", ranks}};
}

void print(const Json& r) {
    const auto mean = [&](const char* what) {
        return fmt::format("{:.3f} +- {:.3f}", r[what]["mean"].get<double>(), r[what]["interval_95"].get<double>());
    };
    fmt::print("a batch of {} samples a rank takes {} ms; {} batches/s, {:.0f} samples/s\n",
               r["batch"].get<std::int64_t>(), mean("iteration_ms"), mean("throughput"),
               r["samples_per_second"].get<double>());
    fmt::print("of it delayed and waiting: {} ms; batches that a rank had started and another had not: {} at most\n",
               mean("delay_ms_per_batch"), r["lag_max"].get<double>());
    fmt::print("\n{:>4} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8}   {:>12} {:>12} {:>12} {:>12}\n", "rank", "batch, ms",
               "delay", "start", "bottom", "exchange", "top", "bytes put", "tables", "buffers", "slots");
    for (const Json& rank : r["by_rank"]) {
        double sum = 0;
        for (const Json& run : rank["iteration_ms"])
            sum += run.get<double>();
        const Json& s = rank["stages_ms"];
        const Json& m = rank["memory"];
        fmt::print(
            "{:>4} {:>9.3f} {:>8.3f} {:>8.3f} {:>8.3f} {:>8.3f} {:>8.3f}   {:>12.0f} {:>12.0f} {:>12.0f} {:>12.0f}\n",
            rank["rank"].get<int>(), sum / static_cast<double>(rank["iteration_ms"].size()), s["delay"].get<double>(),
            s["start"].get<double>(), s["bottom"].get<double>(), s["exchange"].get<double>(), s["top"].get<double>(),
            rank["bytes_per_batch"].get<double>(), m["static"].get<double>(), m["dynamic"].get<double>(),
            m["slots"].get<double>());
    }
}

void write_predictions(const Options& o, sw::CommunicatorRef comm, const Pipeline& pipeline, const Samples& samples) {
    const auto all = sw::gather_v<float>(comm, 0, pipeline.probabilities());
    if (comm.rank() != 0) return;
    std::string text;
    std::vector<std::size_t> next(all.size());
    for (const auto& ranks : samples)
        for (std::size_t rank = 0; rank < ranks.size(); ++rank)
            for (std::int64_t i = 0; i < ranks[rank].size(); ++i)
                text += fmt::format("{} {:.9g}\n", ranks[rank].first + i, all[rank][next[rank]++]);
    output_files::write_text(o.out, text);
}

void explain(const Options& o, const Pipeline& pipeline, const Samples& samples) {
    const sw::LayerBase& layer = pipeline.layer();
    std::vector<sw::JaggedView<std::int64_t>> views;
    for (const RankSamples& part : samples.front())
        views.push_back(part.ids.view());
    const sw::LayerCost cost = layer.predict_cost(views);
    fmt::print("{}\n", sw::describe(layer.program(), layer.branches(), cost.segments));
    fmt::print("memory of a rank, bytes\n{:>4} {:>14} {:>14} {:>20}\n", "rank", "tables", "slots",
               fmt::format("slots with k = {}", o.bound + 1));
    for (int rank = 0; rank < o.ranks; ++rank) {
        const auto slots = o.transport == Transport::rounds ? 0 : layer.blueprint().slot_bytes(rank);
        const auto exchanges = o.ids == "owner" ? 2 : 1;  // slots that one more k adds
        const auto have = o.ids == "owner" ? 2 * o.bound + 2 : o.bound + 1;
        fmt::print("{:>4} {:>14} {:>14} {:>20}\n", rank, layer.predict_static_bytes(rank), slots,
                   slots / have * (have + exchanges));
    }
}

}  // namespace infer_dlrm
