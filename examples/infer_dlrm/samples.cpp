// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "samples.hpp"

#include <algorithm>
#include <random>

#include <fmt/format.h>

#include "../train_dlrm/data.hpp"
#include "progress.hpp"
#include "shardwise/core/error.hpp"

namespace infer_dlrm {

namespace {

/// Bags cut to one length a table.
void cut_bags(RankSamples& samples, const std::vector<std::int64_t>& lengths) {
    sw::JaggedBatch<std::int64_t> cut{.samples = samples.ids.samples, .features = samples.ids.features};
    const sw::JaggedView<std::int64_t> all = samples.ids.view();
    std::int64_t id = 0;
    for (std::int64_t bag = 0; bag < all.bags(); ++bag) {
        const std::int64_t length = std::min(all.length(bag), lengths[static_cast<std::size_t>(bag / all.samples)]);
        cut.lengths.push_back(static_cast<std::int32_t>(length));
        cut.values.insert(cut.values.end(), all.values.begin() + id, all.values.begin() + id + length);
        id += all.length(bag);
    }
    samples.ids = std::move(cut);
}

/// The samples [first, first + count) of a batch.
RankSamples part_of(const sw::ClickBatch& batch, std::int64_t first, std::int64_t count) {
    RankSamples part;
    part.dense.assign(batch.dense.begin() + first * batch.dense_columns,
                      batch.dense.begin() + (first + count) * batch.dense_columns);
    part.dense_columns = batch.dense_columns;
    part.ids.samples = count;
    part.ids.features = batch.ids.features;
    const sw::JaggedView<std::int64_t> all = batch.ids.view();
    std::int64_t id = 0;
    for (std::int64_t bag = 0; bag < all.bags(); ++bag) {
        const std::int64_t length = all.length(bag);
        const std::int64_t sample = bag % all.samples;
        if (sample >= first && sample < first + count) {
            if (!all.single()) part.ids.lengths.push_back(static_cast<std::int32_t>(length));
            part.ids.values.insert(part.ids.values.end(), all.values.begin() + id, all.values.begin() + id + length);
        }
        id += length;
    }
    return part;
}

}  // namespace

std::shared_ptr<const Samples> read_samples(const Options& o, bool shown) {
    const auto data = train_dlrm::training_data(o.data, 0, 1);
    auto samples = std::make_shared<Samples>();
    std::mt19937_64 dice{o.seed * 7 + 3};
    Progress progress{"reading", o.batches, shown};
    std::int64_t first = 0;
    while (o.batches == 0 || std::ssize(*samples) < o.batches) {
        const sw::ClickBatch* const next = data->next();
        if (next == nullptr) break;
        const sw::ClickBatch& batch = *next;
        auto& ranks = samples->emplace_back();
        std::int64_t taken = 0;
        for (int rank = 0; rank < o.ranks; ++rank) {
            const std::int64_t count = std::min(o.batch, batch.samples() - taken);
            ranks.push_back(part_of(batch, taken, count));
            ranks.back().first = first + taken;
            taken += count;
            if (o.skew == 1) continue;
            std::vector<std::int64_t> lengths;
            for (std::int64_t f = 0; f < batch.ids.features; ++f)
                lengths.push_back(1 + static_cast<std::int64_t>(dice() % static_cast<std::uint64_t>(o.skew)));
            cut_bags(ranks.back(), lengths);
        }
        first += batch.samples();
        progress.show(std::ssize(*samples), first);
    }
    if (first == 0) throw sw::BadInput{"there is no sample in the data: give files with some"};
    if (std::ssize(*samples) < o.batches)
        throw sw::BadInput{
            fmt::format("--batches {} of {} samples for {} ranks, and the data has {} samples: give fewer or "
                        "smaller ones",
                        o.batches, o.batch, o.ranks, first)};
    return samples;
}

}  // namespace infer_dlrm
