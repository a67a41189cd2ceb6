// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "evaluation.hpp"

#include <utility>
#include <vector>

#include "saving.hpp"
#include "shardwise/comm/collectives.hpp"
#include "shardwise/metrics/auc.hpp"
#include "shardwise/metrics/ranking.hpp"

namespace train_dlrm {

namespace {

template <class Sums>
Sums add_up(const Sums& mine, sw::CommunicatorRef comm) {
    Sums sum;
    for (const auto& theirs : sw::all_gather_v<Sums>(comm, std::span{&mine, 1}))
        sum += theirs.at(0);
    return sum;
}

template <class T>
std::vector<T> concatenate(const std::vector<std::vector<T>>& parts) {
    std::vector<T> all;
    for (const auto& part : parts)
        all.insert(all.end(), part.begin(), part.end());
    return all;
}

}  // namespace

Quality evaluate(Model& model, Batches& batches, sw::CommunicatorRef comm, bool prefetch, Ranks ranks) {
    std::vector<float> logits;
    std::vector<float> labels;
    sw::BinarySums sums;
    sw::RankingSums ranking;
    sw::ClickBatch current;
    sw::ClickBatch upcoming;
    bool started = false;
    const auto fetch = [&] {
        batches.note(Notes::of_signal());
        started = batches.announce(upcoming) && prefetch;
        if (started) model.start(upcoming);
    };
    batches.rewind();
    fetch();
    while (batches.global_samples() != 0 || batches.failed()) {
        if (batches.failed()) {
            if (started) model.drop();
            batches.fail();
        }
        if (Notes::signal(batches.notes()) != 0) {
            if (started) model.drop();
            return Quality::unknown();
        }
        std::swap(current, upcoming);
        if (!started) model.start(current);
        fetch();
        const std::span<const float> predicted = model.forward(current);
        sums.add_logits(predicted, current.labels);
        if (ranks == Ranks::samples) {
            logits.insert(logits.end(), predicted.begin(), predicted.end());
            labels.insert(labels.end(), current.labels.begin(), current.labels.end());
        } else if (current.samples() != 0) {
            ranking.add(predicted, std::ssize(predicted) / current.samples());
        }
        model.finish();
    }
    const sw::BinarySums all = add_up(sums, comm);
    return {.samples = all.samples,
            .loss = all.log_loss(),
            .auc = ranks == Ranks::candidates ? add_up(ranking, comm).auc()
                                              : sw::auc(concatenate(sw::all_gather_v<float>(comm, logits)),
                                                        concatenate(sw::all_gather_v<float>(comm, labels))),
            .ne = all.normalized_entropy()};
}

void RunningQuality::add(std::span<const float> logits, std::span<const float> labels) {
    sums_.add_logits(logits, labels);
    auc_.add_logits(logits, labels);
}

void RunningQuality::reset() {
    sums_ = {};
    auc_.reset();
}

Quality RunningQuality::value(sw::CommunicatorRef comm) const {
    sw::StreamingAuc merged;
    for (const auto& theirs : sw::all_gather_v<std::int64_t>(comm, auc_.counts()))
        merged.merge(theirs);
    const sw::BinarySums all = add_up(sums_, comm);
    return {.samples = all.samples, .loss = all.log_loss(), .auc = merged.value(), .ne = all.normalized_entropy()};
}

}  // namespace train_dlrm
