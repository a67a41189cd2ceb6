// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/data/batch.hpp"
#include "shardwise/data/sizes_ahead.hpp"

/// \file
/// Batches of all ranks, in step: how many samples a global batch has, and whether every rank could read its own.

namespace shardwise::inline SHARDWISE_ABI {

/// Lends batches one after the other: `next` returns null at the end, `rewind` goes back to the beginning. A
/// PrefetchingLoader is one.
template <class Loader>
concept BatchLoader = requires(Loader& loader) {
    { loader.next() } -> std::convertible_to<const ClickBatch*>;
    loader.rewind();
};

/// Reads this rank's batches and tells the others how many samples each has, since a loss is a mean over the samples of
/// all ranks, and a rank that cannot read has to stop all of them. The number travels ahead, beside a batch's ids:
///
///     batches.announce(batch);                       // reads, and sends the number
///     flight = layer.start(batch.ids.view());        // the ids travel with it
///     // ... the step before ...
///     const std::int64_t samples = batches.global_samples();
///     if (batches.failed()) batches.fail();          // after flights under way have ended
///     if (samples == 0) break;                       // the end, on every rank
///
/// Cost: a message of 8 bytes to each other rank for each batch, and for the end. One instance a rank; not thread safe.
template <BatchLoader Loader>
class GlobalBatches : public detail::SizesAhead<1> {
  public:
    /// Not collective.
    /// \param loader  of this rank's part of the data; outlives this. No batch is empty on every rank, see Slice
    /// \param dense_columns, features  of an empty batch, where this rank has no sample and others do
    GlobalBatches(CommunicatorRef comm, Loader& loader, std::int64_t dense_columns, std::int64_t features)
        : SizesAhead{comm}, loader_{&loader}, dense_columns_{dense_columns}, features_{features} {}

    /// Back to the beginning of the data, not between announce() and global_samples(). Not collective, but all ranks do
    /// it at the same batch.
    void rewind() {
        start_over();
        loader_->rewind();
    }
    /// Reads the next batch into `batch`, an empty one at the end or when it cannot be read (BadInput), and tells the
    /// others. Collective in order, does not wait; global_samples() follows before the next one.
    /// \returns false at the end of the data
    bool announce(ClickBatch& batch) {
        const Seconds measured = measure_input();
        std::int64_t mine = ended;
        batch.resize_single(0, dense_columns_, features_);
        try {
            if (const ClickBatch* next = loader_->next()) {
                batch = *next;
                mine = batch.samples();
            }
        } catch (const BadInput& error) {
            cannot_read(error.what());
            mine = unreadable;
        }
        tell({mine});
        return mine != ended;
    }
    /// The number of samples of the announced batch over all ranks; waits for the others' numbers. Collective.
    /// \returns 0 when the data has ended
    /// \throws BadInput on every rank when the data of some ranks has ended and that of others has not
    [[nodiscard]] std::int64_t global_samples() {
        const Seconds measured = measure_sync();
        const std::vector<Numbers> all = hear();
        std::int64_t sum = 0;
        int ends = 0;
        int first_end = 0;
        for (int rank = ranks() - 1; rank >= 0; --rank) {
            const std::int64_t samples = all[static_cast<std::size_t>(rank)][0];
            sum += hear_of(static_cast<std::size_t>(rank), samples);
            if (samples == ended) {
                ++ends;
                first_end = rank;
            }
        }
        if (!failed() && ends != 0 && ends != ranks())
            throw BadInput{concat({"the data of rank ", first_end,
                                   " has ended, and that of other ranks has not: give all ranks the same files"})};
        return sum;
    }

  private:
    Loader* loader_;
    std::int64_t dense_columns_;
    std::int64_t features_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
