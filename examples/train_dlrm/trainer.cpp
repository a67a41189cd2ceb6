// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "trainer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "choose_policies.hpp"
#include "data.hpp"
#include "evaluation.hpp"
#include "feed.hpp"
#include "meter.hpp"
#include "model.hpp"
#include "output_files.hpp"
#include "place_rows.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "rows_report.hpp"
#include "saving.hpp"
#include "shardwise/checkpoint/layer_checkpoint.hpp"
#include "shardwise/comm/collectives.hpp"
#include "shardwise/dense/gemm.hpp"
#include "shardwise/plan/chrome_trace.hpp"
#include "shardwise/plan/describe.hpp"
#include "stop_signal.hpp"
#include "stopwatch.hpp"
#include "tune_cache.hpp"

namespace train_dlrm {

namespace {

/// A run on one rank.
class Trainer {
  public:
    Trainer(const Options& options, sw::CommunicatorRef comm)
        : o_{options},
          below_{comm},
          counted_{below_},
          model_{o_, counted_},
          training_{training_data(o_, comm.rank(), comm.size())},
          test_{test_data(o_, comm.rank(), comm.size())},
          batches_{counted_, *training_, o_, model_.embedding()},
          meter_{counted_, below_, o_.measure, o_.prefetch ? 2 : 1},
          saving_{o_, below_, [this] { return checkpoint(); }} {
        if (test_) test_batches_.emplace(counted_, *test_, batch_shape(o_).dense, batch_shape(o_).features);
    }

    void explain();
    void load();
    void train();
    /// Before the first step.
    void begin_saving() { saving_.begin(first_step_); }
    /// Behind the last one.
    void save() {
        if (saves()) saving_.end(model_.steps());
    }
    /// That some rank got; 0: none.
    [[nodiscard]] int signal() const noexcept { return signal_; }
    void trace();
    void report();
    /// What a step takes on the slowest rank: the median of `steps`, behind some to warm up. Collective.
    double time_steps(int steps);

  private:
    struct Loss {
        double sum;  // of this rank's samples
        std::int64_t global_samples;
    };

    [[nodiscard]] bool first() const { return below_.rank() == 0; }
    /// Whether a last checkpoint is written. A run that a signal ended before it learnt anything keeps what is there.
    [[nodiscard]] bool saves() const { return !o_.save.empty() && (signal_ == 0 || !losses_.empty()); }
    /// All that is saved, made ready for it. Collective.
    [[nodiscard]] sw::Checkpoint checkpoint();
    /// Behind the last step, where a signal came: ends what is under way.
    void stop();
    /// The next batch is the first to be learnt from.
    void begin();
    [[nodiscard]] bool enough() const { return o_.steps && model_.steps() >= *o_.steps; }
    void fetch(bool start);
    void epoch(int number);
    void step(const sw::SampleCounts& samples);
    /// Makes the copies of tables equal, and says so where that was not due. Collective.
    void sync(const char* before);
    /// Ends the measured steps. \param ended  the data has, too
    void close_meter(bool ended);
    /// A run that was to go on from a checkpoint has found no sample to learn from. \throws BadInput
    [[noreturn]] void nothing_left() const;
    [[nodiscard]] Quality quality();
    [[nodiscard]] RowsReport rows_of_run(const std::vector<RankPart>& ranks) const;
    [[nodiscard]] double expected_steps() const;

    const Options& o_;
    sw::CommunicatorRef below_;
    Counted counted_;
    Model model_;
    std::unique_ptr<Loader> training_;
    std::unique_ptr<Loader> test_;
    Feed batches_;
    std::optional<Batches> test_batches_;
    Meter meter_;
    Saving saving_;
    Progress progress_;
    int signal_ = 0;

    const double epoch_samples_ = estimate_samples(o_);  // 0: there is no telling
    sw::ClickBatch current_;
    sw::ClickBatch upcoming_;
    std::array<sw::BatchKind, 2> kinds_{};  // of both
    std::array<Fed, 2> fed_{};              // (kind): what was learnt from
    bool started_ = false;                  // the ids of `upcoming_` are on their way
    std::int64_t first_step_ = 0;
    std::int64_t seen_ = 0;  // samples of the training data, from its beginning
    std::int64_t skip_ = 0;  // samples that the loaded checkpoint has seen
    std::vector<Loss> losses_;
    std::vector<double> step_seconds_;
    std::vector<Epoch> epochs_;
    RunningQuality running_;
    std::int64_t synced_ = 0;      // steps when copies were last synced before a test or a save, or loaded
    double seconds_ = 0;           // of steps
    double progress_seconds_ = 0;  // of these: of lines of progress, which wait for the losses of all ranks
    LayerSeconds others_;          // outside of steps
    std::int64_t asked_ = 0;       // ids of the steps
    LookUps tested_;               // of tests, which no profile of the training data is about
};

void Trainer::explain() {
    const auto batches = first_batch(o_, below_);
    if (first()) {
        std::vector<sw::JaggedView<std::int64_t>> views;
        for (const auto& batch : batches)
            views.push_back(batch.view());
        const sw::LayerBase& embedding = model_.embedding();
        sw::SyncTally syncs;
        const sw::LayerCost cost = embedding.predict_cost(views, nullptr, sw::BatchKind::any, &syncs);
        const sw::Topology t = below_.topology();
        fmt::print(
            "The plan of the embedding layer on {} hosts of {} ranks. Bytes are payload + control of all ranks, "
            "predicted for the first batch.\n\n{}\n",
            t.hosts, t.ranks_per_host, sw::describe(embedding.program(), embedding.branches(), cost.segments));
        if (embedding.groups().count() > 1)
            fmt::print("The sync of copies, after one step on the first batch.\n\n{}\n",
                       sw::describe(embedding.sync_program(), {},
                                    cost.sync_segments.empty() ? embedding.blueprint().predict_sync(syncs)
                                                               : cost.sync_segments));
        fmt::print("{}", explain_rows(rows_of_batches(embedding, o_.row_plan.get(), views, cost)));
        std::fflush(stdout);
    }
}

void Trainer::load() {
    sw::Checkpoint all = model_.checkpoint();
    all.numbers = {{"train/samples", 0}};
    const bool alone = sw::load_checkpoint(below_, o_.load, all) == sw::Loaded::weights;
    model_.scatter_modules();
    first_step_ = model_.embedding().steps();
    synced_ = first_step_;
    skip_ = all.numbers.at("train/samples");
    model_.set_steps(first_step_);
    if (o_.steps && *o_.steps != 0 && *o_.steps <= first_step_)
        throw sw::BadInput{fmt::format(
            "{} holds {} steps, and --steps {} counts them, too: nothing is left to train; give --steps {} or more",
            o_.load, first_step_, *o_.steps, first_step_ + 1)};
    if (!first()) return;
    if (alone) fmt::print(stderr, "{} has weights alone: moments, steps and samples begin anew\n", o_.load);
    if (o_.steps == 0 || o_.epochs == 0)
        fmt::print(stderr, "loaded step {} of {}: --{} 0 trains nothing\n", first_step_, o_.load,
                   o_.steps == 0 ? "steps" : "epochs");
    else if (!alone)
        fmt::print(stderr, "continuing from step {} of {}\n", first_step_, o_.load);
    std::fflush(stderr);
}

void Trainer::nothing_left() const {
    const std::int64_t an_epoch = std::max<std::int64_t>(1, seen_ / o_.epochs);
    throw sw::BadInput{fmt::format(
        "{} has learnt from {} samples in {} steps, and --epochs {} has {}: nothing is left to train; give --epochs {} "
        "or more",
        o_.load, skip_, first_step_, o_.epochs, seen_, std::max<std::int64_t>(o_.epochs, skip_ / an_epoch) + 1)};
}

void Trainer::sync(const char* before) {
    const std::int64_t every = o_.groups.sync_every.value_or(1);
    if (!model_.embedding().sync()) return;
    const std::int64_t steps = std::min(model_.steps() % every, model_.steps() - synced_);
    synced_ = model_.steps();
    if (!first()) return;
    fmt::print(stderr, "copies of tables synced before the {}, {} steps after the last sync\n", before, steps);
    std::fflush(stderr);
}

sw::Checkpoint Trainer::checkpoint() {
    sync("save");
    model_.gather_modules();
    sw::Checkpoint all = model_.checkpoint();
    all.numbers = {{"train/samples", std::max(seen_, skip_)}};
    return all;
}

void Trainer::stop() {
    if (started_) model_.drop();
    started_ = false;
    model_.finish_sync();
    if (meter_.open()) meter_.abandon();
}

void Trainer::fetch(bool start) {
    batches_.note(static_cast<std::uint8_t>(saving_.notes() | (progress_.due() ? Notes::progress : 0U)));
    started_ = batches_.announce(upcoming_) && start && seen_ >= skip_;
    kinds_[1] = batches_.kind();
    if (started_) model_.start(upcoming_, kinds_[1]);
}

void Trainer::train() {
    progress_ = Progress{below_, expected_steps()};
    model_.tracer().record(!o_.trace.empty() && o_.measure > 0);
    for (int number = 1; number <= o_.epochs && !enough() && signal_ == 0; ++number)
        epoch(number);
    progress_.done();
    if (signal_ == 0 && losses_.empty() && !o_.load.empty() && o_.steps != 0 && o_.epochs != 0) nothing_left();
    if (epochs_.empty()) epochs_.push_back({.number = 0, .steps = 0, .quality = quality()});
}

void Trainer::begin() {
    sw::barrier(below_);  // clocks start together: what a rank's tables took to fill is no step's
    if (o_.save_every && o_.save_every->steps > 0)  // what the first save moves is none of the measured steps
        meter_.at_most(o_.save_every->steps - model_.steps() % o_.save_every->steps);
    meter_.begin(model_, batches_);
    seconds_ = progress_seconds_ = 0;
    batches_.forget_seconds();
    others_ = model_.layer_seconds();
}

void Trainer::close_meter(bool ended) {
    model_.finish_sync();
    meter_.close(model_, batches_, ended);
}

void Trainer::epoch(int number) {
    const auto before = static_cast<std::int64_t>(losses_.size());
    if (losses_.empty() && seen_ >= skip_) begin();
    if (number > 1) batches_.rewind();
    running_.reset();
    {
        const Stopwatch watch{seconds_};
        fetch(o_.prefetch);
    }
    for (;;) {
        std::int64_t global_samples = 0;
        {
            const Stopwatch watch{seconds_};
            global_samples = batches_.global_samples();
        }
        if (batches_.failed()) {
            if (started_) model_.drop();
            batches_.fail();
        }
        if (global_samples == 0) {
            if (meter_.steps() != 0) close_meter(true);
            break;
        }
        if (signal_ = Notes::signal(batches_.notes()); signal_ != 0) {
            stop();
            break;
        }
        if ((batches_.notes() & Notes::progress) != 0) {
            const Stopwatch watch{seconds_};
            const Stopwatch shown{progress_seconds_};
            progress_.show();
        }
        if (seen_ >= skip_) saving_.between_steps(model_.steps(), batches_.notes(), meter_.open());
        std::swap(current_, upcoming_);
        kinds_[0] = kinds_[1];
        const bool skipped = seen_ < skip_;
        seen_ += global_samples;
        if (skipped) {  // the run that saved the checkpoint has learnt from it
            if (seen_ >= skip_) begin();
            fetch(o_.prefetch);
            continue;
        }
        if (meter_.open()) meter_.predict(model_, batches_, current_, kinds_[0]);
        const Stopwatch watch{seconds_};
        step(sw::count_samples(model_.embedding().groups(), below_.rank(), batches_.samples_by_rank()));
        if (enough()) {
            close_meter(false);
            break;
        }
        if (meter_.closing()) {
            close_meter(false);
            model_.tracer().record(false);
            fetch(o_.prefetch);
        }
    }
    const std::int64_t steps = static_cast<std::int64_t>(losses_.size()) - before;
    if (steps != 0) epochs_.push_back({.number = number, .steps = steps, .quality = quality()});
}

void Trainer::step(const sw::SampleCounts& samples) {
    if (!started_) model_.start(current_, kinds_[0]);
    Fed& fed = fed_[static_cast<std::size_t>(kinds_[0])];
    fed.samples += samples.world;
    ++fed.batches;
    const Clock::time_point begin = Clock::now();
    const bool last = o_.steps && model_.steps() + 1 >= *o_.steps;
    if (!last && !meter_.closing()) fetch(o_.prefetch);
    const std::span<const float> logits = model_.forward(current_);
    if (!test_) running_.add(logits, current_.labels);
    const double loss = model_.learn(current_, logits, samples);
    asked_ += std::ssize(current_.ids.values);
    losses_.push_back({loss, samples.world});
    if (o_.hot_batches && !o_.steps)  // a step has as many samples as its kind
        progress_.expect(o_.epochs * epoch_samples_ * static_cast<double>(std::ssize(losses_)) /
                         static_cast<double>(fed_[0].samples + fed_[1].samples));
    progress_.step(model_.steps(), samples.world, loss);
    step_seconds_.push_back(seconds_since(begin));
    fed.seconds += step_seconds_.back();
}

double Trainer::time_steps(int steps) {
    constexpr std::ptrdiff_t warm_up = 3;
    for (int number = 1; !enough() && std::ssize(step_seconds_) < warm_up + steps; ++number) {
        if (signal_ != 0) return 0;  // what comes next ends, too
        const std::size_t before = step_seconds_.size();
        epoch(number);
        if (step_seconds_.size() == before && signal_ == 0)
            throw sw::BadInput{"--tune-cache: there is no sample to time steps with"};
    }
    if (signal_ != 0) return 0;
    double slowest = 0;
    const auto middle = step_seconds_.begin() + (warm_up + std::ssize(step_seconds_)) / 2;
    std::nth_element(step_seconds_.begin() + warm_up, middle, step_seconds_.end());
    for (const auto& theirs : sw::all_gather_v<double>(below_, std::span{&*middle, 1}))
        slowest = std::max(slowest, theirs[0]);
    return slowest;
}

Quality Trainer::quality() {
    if (!test_) return running_.value(counted_);
    if (signal_ != 0) return Quality::unknown();  // nobody waits for a test
    const LayerSeconds testing = model_.layer_seconds();
    sync("test");
    const LookUps before_test = look_ups_of(model_.embedding());
    const Quality quality_of_test =
        evaluate(model_, *test_batches_, counted_, o_.prefetch, o_.sequences ? Ranks::candidates : Ranks::samples);
    signal_ = Notes::signal(test_batches_->notes());
    others_ -= testing;
    others_ += model_.layer_seconds();
    tested_ += look_ups_of(model_.embedding());
    tested_ -= before_test;
    return quality_of_test;
}

double Trainer::expected_steps() const {
    const double an_epoch = std::ceil(epoch_samples_ / static_cast<double>(o_.batch * below_.size()));
    const double of_data = o_.epochs * an_epoch;
    if (!o_.steps) return of_data;
    const auto wanted = static_cast<double>(*o_.steps);
    return of_data > 0 ? std::min(wanted, of_data) : wanted;
}

void Trainer::trace() {
    sw::write_chrome_trace(below_, o_.trace, model_.tracer(), meter_.rounds());
}

RowsReport Trainer::rows_of_run(const std::vector<RankPart>& ranks) const {
    RowsReport report;
    if (o_.row_plan != nullptr) report = rows_of(*o_.row_plan);
    report.map_bytes = model_.embedding().blueprint().row_map_bytes();
    for (const RankPart& rank : ranks) {
        report.unseen += rank.unseen;
        report.asked += rank.asked;
        if (o_.policies.requests == "coalesced") report.distinct = report.distinct.value_or(0) + rank.distinct;
        report.looked_up.push_back(rank.looked_up);
        report.payload += rank.layer_payload;
        for (std::size_t tier = 0; tier < report.tiers.size(); ++tier) {
            report.tiers[tier].lookups += rank.lookups[tier];
            report.tiers[tier].looked_up.push_back(rank.looked_up_by_tier[tier]);
            report.tiers[tier].payload += rank.payload[tier];
            report.tiers[tier].predicted_payload += rank.predicted_payload[tier];
        }
    }
    return report;
}

void Trainer::report() {
    RankPart mine;
    mine.times.total = seconds_;
    LayerSeconds layer = model_.layer_seconds();
    layer -= others_;
    mine.times.exposed = layer.exposed;
    mine.times.lookup = layer.lookup;
    auto& split = mine.times.seconds;
    split[1] = layer.exchange;
    split[2] = model_.reduction_seconds();
    split[3] = batches_.sync_seconds() + progress_seconds_;
    split[4] = batches_.input_seconds();
    split[5] = layer.sync;
    split[0] = std::max(0.0, seconds_ - std::accumulate(split.begin() + 1, split.end(), 0.0));
    mine.predicted = meter_.predicted();
    mine.moved = meter_.moved();
    mine.predicted_memory = meter_.predicted_memory(model_);
    mine.memory = meter_.measured_memory();
    mine.dense_static_bytes = model_.dense_memory().static_bytes();
    mine.dense_dynamic_bytes = model_.dense_memory().dynamic_bytes();
    LookUps trained = look_ups_of(model_.embedding());
    trained -= tested_;
    std::copy(trained.by_tier.begin(), trained.by_tier.end(), mine.lookups.begin());
    mine.unseen = trained.unseen;
    mine.asked = asked_;
    mine.distinct = trained.distinct;
    mine.looked_up = std::accumulate(trained.looked_up.begin(), trained.looked_up.end(), std::int64_t{0});
    mine.layer_payload = meter_.payload().counted;
    mine.synced = {.moved = meter_.payload().synced, .predicted = meter_.payload().predicted_sync};
    if (o_.row_plan != nullptr) {
        const std::size_t tiers = o_.row_plan->tiers.size();
        add_by_part(trained.looked_up, tiers, mine.looked_up_by_tier);
        add_by_part(meter_.payload().moved, tiers, mine.payload);
        add_by_part(meter_.payload().predicted, tiers, mine.predicted_payload);
    }

    const auto parts = sw::gather_v<RankPart>(below_, 0, std::span{&mine, 1});
    const auto losses = sw::gather_v<Loss>(below_, 0, losses_);
    if (!first()) return;

    Report r;
    r.topology = below_.topology();
    r.first_step = first_step_;
    r.epochs = epochs_;
    r.tested = test_ != nullptr;
    if (o_.sequences) r.popularity_auc = popularity_auc(*o_.sequences, o_.data_seed.value_or(o_.seed));
    r.size = model_.size();
    if (saves()) r.saved = Saved{.file = o_.save, .epoch = epochs_.back().number, .steps = model_.steps()};
    r.signal = signal_;
    r.measured_steps = meter_.steps();
    for (const auto& part : parts)
        r.ranks.push_back(part.at(0));
    r.rows = rows_of_run(r.ranks);
    if (o_.hot_batches) r.fed = fed_;
    for (std::size_t i = 0; i < losses_.size(); ++i) {
        double sum = 0;
        for (const auto& rank : losses)
            sum += rank.at(i).sum;
        r.losses.push_back(sum / static_cast<double>(losses_[i].global_samples));
        r.samples += losses_[i].global_samples;
    }
    fmt::print("{}", to_table(r));
    std::fflush(stdout);
    if (signal_ != 0)
        fmt::print(stderr, "ended by {} after step {}: {}\n", signal_name(signal_), model_.steps(),
                   saves()           ? fmt::format("--load {} goes on from there", o_.save)
                   : o_.save.empty() ? "nothing was saved, --save says where to"
                                     : "nothing was learnt, nothing was saved");
    if (const std::string hint = sw::blas_hint(); !hint.empty()) fmt::print(stderr, "{}\n", hint);
    if (!o_.json.empty()) output_files::write_text(o_.json, to_json(r, o_).dump(2) + "\n");
}

}  // namespace

int run(const Options& asked, sw::CommunicatorRef comm) {
    const Options placed = choose_requests(place_rows(choose_sharding(asked, comm), comm), comm);
    const Options options = tune_cache(placed, comm, [&](const Options& with) {
        constexpr int steps = 20;
        Options o = with;
        o.test.clear();
        o.test_samples = 0;
        o.measure = 0;
        o.load.clear();
        o.save.clear();
        o.save_every.reset();
        o.save_is_folder = false;
        o.steps = steps + 3;
        return Trainer{o, comm}.time_steps(steps);
    });
    if (const std::string note = wire_note(options.policies); !note.empty() && comm.rank() == 0) {
        fmt::print(stderr, "{}\n", note);
        std::fflush(stderr);
    }
    sw::barrier(comm);  // clocks of traces start together
    Trainer trainer{options, comm};
    if (options.explain) {
        trainer.explain();
        if (options.steps == 0) return 0;
    }
    if (!options.load.empty()) trainer.load();
    trainer.begin_saving();
    trainer.train();
    trainer.save();
    if (!options.trace.empty()) trainer.trace();
    trainer.report();
    return trainer.signal();
}

}  // namespace train_dlrm
