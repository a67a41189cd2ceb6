// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "shardwise/dense/gemm.hpp"
#include "stop_signal.hpp"

namespace train_dlrm {

namespace {

using nlohmann::json;

// NaN has no place in JSON.

json tier_json(const sw::TierTraffic& t) {
    return {{"payload", t.payload}, {"control", t.control}, {"messages", t.messages}};
}
json traffic_json(const sw::Traffic& t) {
    return {{"host", tier_json(t.host)}, {"cross_host", tier_json(t.cross_host)}};
}
json quality_json(const Quality& q) {
    return {
        {"samples", q.samples}, {"loss", number_json(q.loss)}, {"auc", number_json(q.auc)}, {"ne", number_json(q.ne)}};
}

template <class Value>
json by_rank(const Report& report, Value value) {
    json all = json::array();
    std::int64_t most = 0;
    for (const RankPart& rank : report.ranks) {
        most = std::max(most, value(rank));
        all.push_back(value(rank));
    }
    return {{"max", most}, {"by_rank", all}};
}

json memory_json(const Report& report, LayerMemory RankPart::*which) {
    const auto part = [&](std::int64_t LayerMemory::*bytes) {
        return by_rank(report, [&](const RankPart& p) { return (p.*which).*bytes; });
    };
    return {{"static", part(&LayerMemory::fixed)},    {"dynamic", part(&LayerMemory::dynamic)},
            {"peak", part(&LayerMemory::peak)},       {"tables", part(&LayerMemory::tables)},
            {"moments", part(&LayerMemory::moments)}, {"flights", part(&LayerMemory::flights)},
            {"syncs", part(&LayerMemory::syncs)}};
}

/// What of the samples that were learnt from, once for each epoch, hot batches had.
double hot_share(const std::array<Fed, 2>& fed) {
    const std::int64_t all = fed[0].samples + fed[1].samples;
    return all == 0 ? 0 : static_cast<double>(fed[1].samples) / static_cast<double>(all);
}

json tuned_json(const Options& o) {
    json tried = json::array();
    for (const TriedCache& one : o.tuned)
        tried.push_back({{"rows", one.rows}, {"step_seconds", one.step_seconds}});
    return o.tuned.empty() ? json() : tried;
}

json hot_json(const Report& r, const Options& o) {
    if (!r.fed) return {};
    const auto& [others, hot] = *r.fed;
    return {{"samples", hot.samples},     {"other_samples", others.samples},
            {"batches", hot.batches},     {"other_batches", others.batches},
            {"seconds", hot.seconds},     {"other_seconds", others.seconds},
            {"share", hot_share(*r.fed)}, {"order", o.hot_order}};
}

std::string hot_text(const std::array<Fed, 2>& fed) {
    const auto& [others, hot] = fed;
    const auto a_batch = [](const Fed& of) {
        return of.batches == 0 ? 0 : 1e3 * of.seconds / static_cast<double>(of.batches);
    };
    return fmt::format(
        "  {:<22}{} of {} samples ({:.1f}%) in {} of {} batches; {:.3f} ms a hot step, {:.3f} ms others\n",
        "hot batches", hot.samples, hot.samples + others.samples, 100 * hot_share(fed), hot.batches,
        hot.batches + others.batches, a_batch(hot), a_batch(others));
}

struct Split {
    double mean = 0;
    double most = 0;
};
template <class Value>
Split split(const Report& report, Value value) {
    Split s;
    const double steps = std::max<double>(1, static_cast<double>(report.losses.size()));
    for (const RankPart& rank : report.ranks) {
        s.mean += value(rank.times) / steps / static_cast<double>(report.ranks.size());
        s.most = std::max(s.most, value(rank.times) / steps);
    }
    return s;
}

std::string bytes_text(double bytes) {
    static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    std::size_t unit = 0;
    while (bytes >= 1024 && unit + 1 < std::size(units)) {
        bytes /= 1024;
        ++unit;
    }
    return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 2, units[unit]);
}

std::string tier_text(const char* name, const sw::TierTraffic& moved, const sw::TierTraffic& predicted,
                      std::int64_t steps) {
    const auto per_step = [&](std::int64_t n) { return static_cast<double>(n) / static_cast<double>(steps); };
    return fmt::format("  {:<13}{:>12}{:>13}{:>12.0f} | {:>12}{:>13}{:>12.0f}\n", name,
                       bytes_text(per_step(moved.payload)), bytes_text(per_step(moved.control)),
                       per_step(moved.messages), bytes_text(per_step(predicted.payload)),
                       bytes_text(per_step(predicted.control)), per_step(predicted.messages));
}

std::string memory_text(const Report& report, LayerMemory RankPart::*which) {
    LayerMemory most;
    for (const RankPart& rank : report.ranks) {
        most.fixed = std::max(most.fixed, (rank.*which).fixed);
        most.dynamic = std::max(most.dynamic, (rank.*which).dynamic);
        most.peak = std::max(most.peak, (rank.*which).peak);
    }
    const auto bytes = [](std::int64_t n) { return bytes_text(static_cast<double>(n)); };
    return fmt::format("{:>12}{:>13}{:>12}", bytes(most.fixed), bytes(most.dynamic), bytes(most.peak));
}

std::string saved_text(const Report& r, const Epoch* best) {
    const Saved& saved = *r.saved;
    std::string text = fmt::format("  {:<22}{}: the model after ", "saved", saved.file);
    if (saved.epoch != 0) text += fmt::format("epoch {}, ", saved.epoch);
    text += fmt::format("step {}", saved.steps);
    if (best != nullptr && best->number != saved.epoch)
        text += fmt::format(" ({} {:.5f}); the best was epoch {}", r.tested ? "test AUC" : "AUC",
                            r.epochs.back().quality.auc, best->number);
    return text + "\n";
}

}  // namespace

const Epoch* Report::best() const {
    const Epoch* best = nullptr;
    for (const Epoch& epoch : epochs)
        if (best == nullptr || epoch.quality.auc > best->quality.auc || std::isnan(best->quality.auc)) best = &epoch;
    return best;
}

double Report::samples_per_second() const {
    double slowest = 0;
    for (const RankPart& rank : ranks)
        slowest = std::max(slowest, rank.times.total);
    return slowest > 0 ? static_cast<double>(samples) / slowest : std::numeric_limits<double>::quiet_NaN();
}

sw::Traffic Report::predicted() const {
    sw::Traffic sum;
    for (const RankPart& rank : ranks)
        sum += rank.predicted;
    return sum;
}

sw::Traffic Report::moved() const {
    sw::Traffic sum;
    for (const RankPart& rank : ranks)
        sum += rank.moved;
    return sum;
}

Synced Report::synced() const {
    Synced sum;
    for (const RankPart& rank : ranks) {
        sum.moved += rank.synced.moved;
        sum.predicted += rank.synced.predicted;
    }
    return sum;
}

double Report::imbalance() const {
    double most = 0;
    double sum = 0;
    for (const RankPart& rank : ranks) {
        most = std::max(most, rank.times.lookup);
        sum += rank.times.lookup;
    }
    return sum > 0 ? most * static_cast<double>(ranks.size()) / sum : std::numeric_limits<double>::quiet_NaN();
}

json to_json(const Report& r, const Options& o) {
    const Epoch* best = r.best();
    json epochs = json::array();
    for (const Epoch& epoch : r.epochs) {
        json one = quality_json(epoch.quality);
        one["epoch"] = epoch.number;
        one["steps"] = epoch.steps;
        epochs.push_back(one);
    }
    json time;
    for (std::size_t i = 0; i < Times::names.size(); ++i) {
        const Split s = split(r, [&](const Times& t) { return t.seconds[i]; });
        time[Times::names[i]] = {{"mean", s.mean}, {"max", s.most}};
    }
    const Split exposed = split(r, [](const Times& t) { return t.exposed; });
    time["exposed_exchange"] = {{"mean", exposed.mean}, {"max", exposed.most}};
    const Split lookup = split(r, [](const Times& t) { return t.lookup; });
    time["lookup"] = {{"mean", lookup.mean}, {"max", lookup.most}};
    const Synced synced = r.synced();
    const Split total = split(r, [](const Times& t) { return t.total; });
    time["step"] = {{"mean", total.mean}, {"max", total.most}};
    json losses = json::array();
    for (const double loss : r.losses)
        losses.push_back(number_json(loss));
    return {{"config", to_json(o, r.topology)},
            {"model",
             {{"flops_per_sample", r.size.flops},
              {"dense_parameters", r.size.dense},
              {"module_parameters", r.size.modules},
              {"table_parameters", r.size.tables},
              {"compression", r.size.compression},
              {"products", sw::product_library()}}},
            {"samples_per_second", number_json(r.samples_per_second())},
            {"steps", r.first_step + static_cast<std::int64_t>(r.losses.size())},
            {"first_step", r.first_step},
            {"samples", r.samples},
            {"loss", best == nullptr ? json() : number_json(best->quality.loss)},
            {"auc", best == nullptr ? json() : number_json(best->quality.auc)},
            {"ne", best == nullptr ? json() : number_json(best->quality.ne)},
            {"popularity_auc", r.popularity_auc ? number_json(*r.popularity_auc) : json()},
            {"quality_of", r.tested ? "test" : "train"},
            {"best_epoch", best == nullptr ? json() : json(best->number)},
            {"epochs", epochs},
            {"ended_by", r.signal == 0 ? json() : json(signal_name(r.signal))},
            {"saved",
             r.saved ? json{{"file", r.saved->file}, {"epoch", r.saved->epoch}, {"steps", r.saved->steps}} : json()},
            {"losses", losses},
            {"bytes",
             {{"steps", r.measured_steps},
              {"predicted", traffic_json(r.predicted())},
              {"moved", traffic_json(r.moved())},
              {"embedding_payload", r.rows.payload},
              {"replica_sync", {{"predicted", synced.predicted}, {"moved", synced.moved}}}}},
            {"memory",
             {{"steps", r.measured_steps},
              {"predicted", memory_json(r, &RankPart::predicted_memory)},
              {"measured", memory_json(r, &RankPart::memory)},
              {"dense",
               {{"static", by_rank(r, [](const RankPart& p) { return p.dense_static_bytes; })},
                {"dynamic", by_rank(r, [](const RankPart& p) { return p.dense_dynamic_bytes; })}}}}},
            {"time", time},
            {"imbalance", number_json(r.imbalance())},
            {"tuned", tuned_json(o)},
            {"hot", hot_json(r, o)},
            {"rows", tiers_json(r.rows)},
            {"row_map_bytes", r.rows.tiers.empty() ? json() : json(r.rows.map_bytes)},
            {"requests", requests_json(r.rows)},
            {"looked_up_rows", looked_up_json(r.rows.looked_up)}};
}

std::string to_table(const Report& r) {
    std::string text;
    const Epoch* best = r.best();
    if (r.epochs.size() > 1)
        for (const Epoch& epoch : r.epochs)
            text += fmt::format("  epoch {:<4} {:>8} steps   loss {:.5f}   AUC {:.5f}   NE {:.5f}{}\n", epoch.number,
                                epoch.steps, epoch.quality.loss, epoch.quality.auc, epoch.quality.ne,
                                &epoch == best ? "   best" : "");
    if (best != nullptr) {
        text += fmt::format("  {:<22}{:.5f}\n", r.tested ? "test loss" : "loss", best->quality.loss);
        text += fmt::format("  {:<22}{:.5f}\n", r.tested ? "test AUC" : "AUC", best->quality.auc);
        text += fmt::format("  {:<22}{:.5f}{}\n", "normalized entropy", best->quality.ne,
                            best->quality.ne > 1 ? ": worse than a constant, the base rate as every prediction" : "");
    }
    if (r.popularity_auc) text += fmt::format("  {:<22}{:.5f}\n", "AUC by popularity", *r.popularity_auc);
    if (r.saved) text += saved_text(r, best);
    text += fmt::format("  {:<22}{:.2f} MFlops a sample; parameters: {} dense, {} of tables", "model",
                        1e-6 * static_cast<double>(r.size.flops), r.size.dense, r.size.tables);
    if (r.size.modules != 0)
        text += fmt::format(", {} of modules that compress {:.2f} times", r.size.modules, r.size.compression);
    text += fmt::format("\n  {:<22}by {}\n", "dense products", sw::product_library());
    text += rows_text(r.rows);
    if (r.fed) text += hot_text(*r.fed);
    if (r.losses.empty()) return text;
    text += fmt::format("  {:<22}{:.5f} at the first step, {:.5f} at the last of {}\n", "training loss",
                        r.losses.front(), r.losses.back(), r.losses.size());
    text += fmt::format("  {:<22}{:.0f}\n", "samples/s", r.samples_per_second());
    text += "  time of a step        ";
    for (std::size_t i = 0; i < Times::names.size(); ++i) {
        const Split s = split(r, [&](const Times& t) { return t.seconds[i]; });
        if (s.most == 0 && i == 5) continue;  // no copies
        text += fmt::format("{}{} {:.3f} ms", i == 0 ? "" : ", ", Times::names[i], 1e3 * s.mean);
        if (i == 1)
            text += fmt::format(" (exposed {:.3f})", 1e3 * split(r, [](const Times& t) { return t.exposed; }).mean);
    }
    text += "\n";
    if (const Split lookup = split(r, [](const Times& t) { return t.lookup; }); lookup.mean > 0)
        text += fmt::format("  {:<22}{:.3f} ms a step, of these; on the slowest rank {:.2f} times the mean\n",
                            "look-ups", 1e3 * lookup.mean, r.imbalance());
    if (r.measured_steps == 0) return text;
    const sw::Traffic moved = r.moved();
    const sw::Traffic predicted = r.predicted();
    text += fmt::format("\n  a step of all ranks, mean of the first {}\n", r.measured_steps);
    text += fmt::format("  {:<13}{:^37} | {:^37}\n", "", "moved", "predicted");
    text += fmt::format("  {:<13}{:>12}{:>13}{:>12} | {:>12}{:>13}{:>12}\n", "", "payload", "control", "messages",
                        "payload", "control", "messages");
    text += tier_text("host", moved.host, predicted.host, r.measured_steps);
    text += tier_text("cross_host", moved.cross_host, predicted.cross_host, r.measured_steps);
    const auto a_step = [&](std::int64_t bytes) {
        return bytes_text(static_cast<double>(bytes) / static_cast<double>(r.measured_steps));
    };
    for (const RowTier& tier : r.rows.tiers)
        text += fmt::format("  {:<13}{:>12}{:>25} | {:>12}\n", "rows in " + tier.name, a_step(tier.payload), "",
                            a_step(tier.predicted_payload));
    const Synced synced = r.synced();
    if (synced.moved != 0 || synced.predicted != 0)
        text +=
            fmt::format("  {:<13}{:>12}{:>25} | {:>12}\n", "syncs", a_step(synced.moved), "", a_step(synced.predicted));
    text += fmt::format("  {:<13}{:>12}{:>13}{:>12} | {:>12}{:>13}{:>12}\n", "memory", "tables", "batches", "peak",
                        "tables", "batches", "peak");
    text += "  of a rank    " + memory_text(r, &RankPart::memory) + " | " +
            memory_text(r, &RankPart::predicted_memory) + "\n";
    bool same = r.rows.as_predicted();
    for (const RankPart& rank : r.ranks)
        same = same && rank.moved == rank.predicted && rank.memory == rank.predicted_memory &&
               rank.synced.moved == rank.synced.predicted;
    text += same ? "  every byte moved and held was predicted\n" : "  THE PREDICTION IS WRONG: please report it\n";
    return text;
}

}  // namespace train_dlrm
