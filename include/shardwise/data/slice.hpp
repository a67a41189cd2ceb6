// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// How the ranks of a world share one stream of samples.

namespace shardwise::inline SHARDWISE_ABI {

/// Samples [first, first + count).
struct SampleRange {
    std::int64_t first = 0;
    std::int64_t count = 0;
    friend constexpr bool operator==(const SampleRange&, const SampleRange&) = default;
};

/// One rank's part of a stream of samples that is dealt in global batches: of global batch g, rank r has the samples
/// [g * batch * ranks + r * batch, ... + batch), cut off where the stream ends.
///
/// So the parts of all ranks, one after the other, are the stream; every rank has the same number of batches; only the
/// last global batch may be smaller, and empty on the last ranks.
struct Slice {
    std::int64_t batch = 1;  ///< samples a batch and rank
    int rank = 0;
    int ranks = 1;

    /// Checks the numbers.
    /// \throws BadInput when batch or ranks is not positive or rank is not in [0, ranks)
    void validate() const {
        if (batch < 1) throw BadInput{concat({"a batch of ", batch, " samples: give at least 1"})};
        if (ranks < 1 || rank < 0 || rank >= ranks)
            throw BadInput{concat({"rank ", rank, " of ", ranks, " ranks: ranks count from 0"})};
    }

    /// Samples of a whole global batch, all ranks together.
    [[nodiscard]] constexpr std::int64_t global_batch() const noexcept { return batch * ranks; }
    /// Samples of a global batch that belong to lower ranks.
    [[nodiscard]] constexpr std::int64_t before() const noexcept { return batch * rank; }
    /// Samples of a global batch that belong to higher ranks.
    [[nodiscard]] constexpr std::int64_t after() const noexcept { return batch * (ranks - 1 - rank); }
    /// Number of batches of a stream of `samples` samples; the same on every rank.
    [[nodiscard]] constexpr std::int64_t batches(std::int64_t samples) const noexcept {
        return samples / global_batch() + (samples % global_batch() != 0 ? 1 : 0);
    }
    /// This rank's share of a global batch of `available` samples (anything above a whole one counts as whole).
    [[nodiscard]] constexpr std::int64_t share(std::int64_t available) const noexcept {
        return std::clamp<std::int64_t>(available - before(), 0, batch);
    }

    // Of a stream whose number of samples is known, with global batches numbered from 0; behind the end there is
    // nothing.

    /// Samples of a global batch, all ranks together: what the mean of a loss is taken over.
    [[nodiscard]] constexpr std::int64_t global_samples(std::int64_t number, std::int64_t samples) const noexcept {
        return number >= batches(samples) ? 0 : std::min(samples - number * global_batch(), global_batch());
    }
    /// This rank's samples of a global batch. \throws BadInput as validate, and for a negative number
    [[nodiscard]] SampleRange range(std::int64_t number, std::int64_t samples) const {
        validate();
        if (number < 0) throw BadInput{concat({"global batch ", number, ": they count from 0"})};
        const std::int64_t available = global_samples(number, samples);
        const std::int64_t mine = share(available);
        return {.first = mine == 0 ? 0 : number * global_batch() + before(), .count = mine};
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI
