// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "shardwise/comm/collectives.hpp"
#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/source_location.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/metrics/auc.hpp"
#include "shardwise/metrics/binary.hpp"
#include "shardwise/metrics/labels.hpp"

/// \file
/// How good binary predictions are, over the samples of all ranks.

namespace shardwise::inline SHARDWISE_ABI {

/// Metrics of binary predictions. NaN where they make no sense, see BinarySums and auc.
struct BinaryQuality {
    std::int64_t samples = 0;
    double log_loss = std::numeric_limits<double>::quiet_NaN();            ///< mean, nats
    double normalized_entropy = std::numeric_limits<double>::quiet_NaN();  ///< log loss over that of the base rate
    double auc = std::numeric_limits<double>::quiet_NaN();                 ///< exact; ties count one half
};
static_assert(std::is_trivially_copyable_v<BinaryQuality>);

/// Of the samples of one rank. A function of the samples as a set: their order changes no bit. Not collective.
/// \param logits (samples) \param labels (samples), each 0 or 1
/// \throws BadInput when sizes differ or a label is neither
/// Cost: two sorts; 32 bytes a sample.
[[nodiscard]] inline BinaryQuality evaluate(std::span<const float> logits, std::span<const float> labels) {
    require_binary_labels(logits.size(), labels);
    std::vector<std::size_t> order(logits.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::vector<float> sorted_logits(logits.size());
    std::vector<float> sorted_labels(logits.size());
    // NaN goes last, whatever its bits: every sum is NaN then.
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        if (std::isnan(logits[a]) || std::isnan(logits[b])) return !std::isnan(logits[a]) && std::isnan(logits[b]);
        return logits[a] != logits[b] ? logits[a] < logits[b] : labels[a] < labels[b];
    });
    for (std::size_t i = 0; i != order.size(); ++i) {
        sorted_logits[i] = logits[order[i]];
        sorted_labels[i] = labels[order[i]];
    }
    BinarySums sums;
    sums.add_logits(sorted_logits, sorted_labels);
    return {.samples = sums.samples,
            .log_loss = sums.log_loss(),
            .normalized_entropy = sums.normalized_entropy(),
            .auc = shardwise::auc(sorted_logits, sorted_labels)};
}

/// Of the samples of all ranks: the same bits on every rank, whichever rank has which samples, so at every number of
/// ranks. Collective.
/// \param logits (samples of this rank) \param labels (samples of this rank), each 0 or 1
/// \throws BadInput on every rank when sizes differ or a label is neither on any rank
/// Cost: rank 0 receives 8 bytes a sample, holds 48 and sorts them twice; three messages a peer. For more samples than
/// rank 0 has memory for: BinarySums and StreamingAuc.
[[nodiscard]] inline BinaryQuality evaluate(CommunicatorRef comm, std::span<const float> logits,
                                            std::span<const float> labels,
                                            const SourceLocation& where = SourceLocation::current()) {
    std::string wrong;
    try {
        require_binary_labels(logits.size(), labels);
    } catch (const BadInput& error) {
        wrong = concat({"rank ", comm.rank(), ": ", error.what()});
    }
    agree_on_input(comm, wrong, where);
    using Prediction = std::array<float, 2>;  // a logit and its label
    std::vector<Prediction> mine(logits.size());
    for (std::size_t i = 0; i != mine.size(); ++i)
        mine[i] = {logits[i], labels[i]};
    std::vector<float> all_logits;
    std::vector<float> all_labels;
    for (const std::vector<Prediction>& theirs : gather_v<Prediction>(comm, 0, mine, where))
        for (const auto& [logit, label] : theirs) {
            all_logits.push_back(logit);
            all_labels.push_back(label);
        }
    BinaryQuality quality;
    if (comm.rank() == 0) quality = evaluate(all_logits, all_labels);
    broadcast(comm, 0, std::span{&quality, 1}, where);
    return quality;
}

}  // namespace shardwise::inline SHARDWISE_ABI
