// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sequences.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shardwise/data/batch.hpp"
#include "shardwise/data/csv_histories.hpp"
#include "shardwise/data/history_generator.hpp"
#include "shardwise/data/row_sampler.hpp"
#include "shardwise/data/zipf.hpp"
#include "shardwise/metrics/ranking.hpp"
#include "shardwise/planning/row_law.hpp"

namespace train_dlrm {

std::shared_ptr<const sw::Histories> make_histories(const SequenceOptions& o, const std::vector<std::string>& files,
                                                    double zipf, std::uint64_t seed) {
    if (!files.empty() && o.csv != nullptr)
        return std::make_shared<const sw::Histories>(sw::read_histories(files, *o.csv));
    if (!files.empty())
        return std::make_shared<const sw::Histories>(sw::read_histories({.files = files, .rows = o.rows}));
    const sw::HistoryGeneratorOptions generated{
        .users = o.users, .shortest = std::max<std::int64_t>(1, o.length / 2), .longest = o.length, .seed = seed};
    return std::make_shared<const sw::Histories>(
        o.law.empty() ? sw::generate_histories(sw::Zipf{o.rows, zipf}, generated)
                      : sw::generate_histories(sw::RowSampler{sw::row_law(o.law)}, generated));
}

sw::NextItemOptions next_items(const SequenceOptions& o, sw::NextItemOptions::Part part, std::uint64_t seed,
                               const sw::Slice& slice) {
    return {.histories = o.histories,
            .part = part,
            .history = o.history,
            .negatives = part == sw::NextItemOptions::Part::test ? test_negatives : o.negatives,
            .seed = seed,
            .slice = slice};
}

double popularity_auc(const SequenceOptions& o, std::uint64_t seed) {
    std::unordered_map<std::int64_t, std::int64_t> counts;
    for (std::int64_t user = 0; user < o.histories->size(); ++user) {
        const std::span<const std::int64_t> items = o.histories->of(user);
        for (const std::int64_t item : items.first(items.size() - 1))
            ++counts[item];
    }
    sw::NextItems test{next_items(o, sw::NextItemOptions::Part::test, seed, {.batch = 1024})};
    sw::RankingSums sums;
    std::vector<std::int64_t> scores;
    for (sw::ClickBatch batch; test.next(batch);) {
        const std::size_t first = batch.ids.values.size() - batch.labels.size();  // of the candidates
        scores.clear();
        for (std::size_t i = first; i < batch.ids.values.size(); ++i) {
            const auto found = counts.find(batch.ids.values[i]);
            scores.push_back(found == counts.end() ? 0 : found->second);
        }
        sums.add(std::span<const std::int64_t>{scores}, 1 + test_negatives);
    }
    return sums.auc();
}

}  // namespace train_dlrm
