// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "progress.hpp"
#include "shardwise/checkpoint/layer_checkpoint.hpp"
#include "shardwise/comm/collectives.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/dense/jagged_rows.hpp"

namespace infer_dlrm {

namespace {

/// Adds the milliseconds of its life to a stage, and a span to the trace.
class [[nodiscard]] Timed {
  public:
    /// \param name  null: what happens has spans of its own
    Timed(double& stage, sw::Tracer& tracer, const char* name, std::uint32_t flight)
        : stage_{&stage}, tracer_{&tracer}, name_{name}, flight_{flight}, traced_{tracer.now()} {}
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;
    ~Timed() {
        *stage_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin_).count();
        if (name_ != nullptr) tracer_->add(name_, sw::SpanKind::compute, flight_, traced_);
    }

  private:
    double* stage_;
    sw::Tracer* tracer_;
    const char* name_;
    std::uint32_t flight_;
    std::int64_t traced_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// What a batch has at most.
sw::BoundOptions bound_of(const Options& o, const Samples& samples) {
    sw::BoundOptions bound{.k = o.bound, .samples = 1, .ids = std::vector<std::int64_t>(o.shape.tables.size(), 0)};
    for (const auto& ranks : samples)
        for (const RankSamples& part : ranks) {
            bound.samples = std::max(bound.samples, part.size());
            std::int64_t bag = 0;
            for (std::int64_t& most : bound.ids) {
                std::int64_t ids = 0;
                for (std::int64_t i = 0; i < part.size(); ++i)
                    ids += part.ids.view().length(bag++);
                most = std::max(most, ids);
            }
        }
    if (o.ids == "sample") {
        bound.serve = o.serve == "each" ? sw::Serve::each : sw::Serve::together;
        bound.progress = o.progress == "thread" ? sw::Progress::thread : sw::Progress::calls;
    }
    return bound;
}

}  // namespace

Stages& Stages::operator+=(const Stages& more) noexcept {
    delay += more.delay;
    start += more.start;
    bottom += more.bottom;
    exchange += more.exchange;
    top += more.top;
    return *this;
}

Pipeline::Pipeline(const Options& o, sw::CommunicatorRef comm, std::optional<sw::OneSidedRef> slots,
                   const Samples& samples)
    : o_{&o}, samples_{&samples}, below_{comm}, comm_{below_}, slots_below_{slots} {
    sw::LayerOptions options{.seed = o.seed, .memory = memory_.get(), .tracer = tracer_.get()};
    if (slots_below_) {
        options.bound = bound_of(o, samples);
        options.slots.emplace(slots_.emplace(*slots_below_));
    }
    layer_ = sw::make_layer(comm_, o.shape.tables, names_of(o), options);
    dense_.emplace(sw::DlrmConfig{.dense_features = o.shape.dense,
                                  .dimension = o.shape.dim(),
                                  .features = o.shape.features(),
                                  .bottom = o.shape.bottom,
                                  .top = o.shape.top,
                                  .seed = o.seed},
                   *memory_);
    if (!o.load.empty()) load();
    if (o.ids != "owner") return;
    for (const auto& ranks : samples) {
        std::vector<sw::JaggedView<std::int64_t>> views;
        Batch& batch = at_owner_.emplace_back();
        for (const RankSamples& part : ranks) {
            views.push_back(part.ids.view());
            batch.samples.push_back(part.size());
        }
        batch.given = sw::concatenated<std::int64_t>(views, layer_->given_features());
    }
}

void Pipeline::load() {
    sw::Checkpoint all{.layer = sw::shards_of(*layer_), .dense = {}, .numbers = {}};
    for (const sw::Parameter& parameter : dense_->parameters())
        all.dense.push_back({parameter.name, {parameter.rows, parameter.columns}, parameter.values()});
    sw::load_checkpoint(below_, o_->load, all);
}

std::int64_t Pipeline::slot_bytes() const {
    return slots_ ? layer_->blueprint().slot_bytes(comm_.rank()) : 0;
}

void Pipeline::start(std::int64_t batch) {
    if (o_->ids == "owner") {
        const Batch& given = at_owner_[static_cast<std::size_t>(batch)];
        under_way_.push_back({layer_->start(given.given.view(), given.samples), batch, ++started_});
    } else {
        under_way_.push_back({layer_->start(own(batch).ids.view()), batch, ++started_});
    }
}

void Pipeline::complete(Stages& stages) {
    auto [flight, batch_number, number] = std::move(under_way_.front());
    under_way_.pop_front();
    const RankSamples& batch = own(batch_number);
    {
        const Timed timed{stages.bottom, *tracer_, "bottom MLP", number};
        dense_->forward_bottom(batch.dense_view());
    }
    sw::LayerVectors vectors;
    {
        const Timed timed{stages.exchange, *tracer_, nullptr, number};
        vectors = layer_->forward(flight);
    }
    const Timed timed{stages.top, *tracer_, "interaction and top MLP", number};
    for (const float logit : dense_->forward_top(pooled(vectors, batch.size())))
        probabilities_.push_back(1.0F / (1.0F + std::exp(-logit)));
}

sw::MatrixView<const float> Pipeline::pooled(const sw::LayerVectors& vectors, std::int64_t samples) {
    if (o_->pooling != "none") return vectors.pooled;
    const std::int64_t dim = o_->shape.dim();
    const std::int64_t width = std::ssize(vectors.sequences) * dim;
    means_.resize(static_cast<std::size_t>(samples * width));
    const sw::MatrixView<float> means{means_.data(), samples, width};
    for (std::size_t f = 0; f < vectors.sequences.size(); ++f)
        sw::mean_of_lists({.rows = vectors.sequences[f], .lengths = vectors.lengths[f]},
                          means.columns_from(static_cast<std::int64_t>(f) * dim, dim));
    return means;
}

sw::TierTraffic Pipeline::put_so_far() const {
    sw::TierTraffic sum;
    for (int to = 0; to < comm_.size(); ++to)
        sum += slots_ ? slots_->sent().at(comm_.rank(), to) : comm_.sent().at(comm_.rank(), to);
    return sum;
}
std::int64_t Pipeline::messages_so_far() const {
    std::int64_t sum = 0;
    for (int to = 0; to < comm_.size(); ++to)
        sum += comm_.sent().at(comm_.rank(), to).messages;
    return sum;
}

Run Pipeline::run(std::int64_t first, std::int64_t end, int number) {
    using Clock = std::chrono::steady_clock;
    Run run;
    Delays delays{o_->delay, o_->seed * 131 + static_cast<std::uint64_t>(number), comm_.rank()};
    Progress progress{number == 0 ? "warming up" : fmt::format("run {} of {}", number, o_->runs), end - first,
                      comm_.rank() == 0};
    probabilities_.clear();
    // Before the barrier: behind it a thread of progress may have answered ranks that are further on.
    const sw::TierTraffic before = put_so_far();
    const std::int64_t messages = messages_so_far();
    sw::barrier(below_);
    std::int64_t samples = 0;
    const auto begin = Clock::now();
    for (std::int64_t batch = first; batch < end; ++batch) {
        {
            const Timed timed{run.stages.delay, *tracer_, o_->delay.law == Delay::Law::none ? nullptr : "delay",
                              started_ + 1};
            delays.wait();
        }
        {
            const Timed timed{run.stages.start, *tracer_, nullptr, started_ + 1};
            start(batch);
        }
        // Rows are taken as soon as they are there, while they are in caches. The batch just started stays under way:
        // asked for a batch ahead, its rows are there by the time they are needed.
        const auto full = [&] { return static_cast<int>(under_way_.size()) > o_->bound; };
        while (full() || (under_way_.size() > 1 && under_way_.front().flight.ready()))
            complete(run.stages);
        samples += o_->data.batch;
        progress.show(batch + 1 - first, samples);
    }
    while (!under_way_.empty())
        complete(run.stages);
    run.milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    layer_->drain();
    if (number != 0) {
        const sw::TierTraffic behind = put_so_far();
        put_ += {.payload = behind.payload - before.payload,
                 .control = behind.control - before.control,
                 .messages = behind.messages - before.messages};
        messages_ += messages_so_far() - messages;
    }
    sw::barrier(below_);
    return run;
}

}  // namespace infer_dlrm
