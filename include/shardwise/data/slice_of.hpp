// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/jagged.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/data/slice.hpp"

/// \file
/// One rank's part of arrays that hold all samples: labels, dense features and bags of ids that a program has read
/// itself. Batch g of a rank is that of Slice; behind the end it is empty.

namespace shardwise::inline SHARDWISE_ABI {

/// Of one number a sample. \param samples  an array, a std::vector or a std::span; not copied
/// \param batch  number of the global batch, from 0
/// \returns a std::span of this rank's samples \throws BadInput for a slice that is none
template <std::ranges::contiguous_range Samples>
    requires std::ranges::borrowed_range<Samples>
[[nodiscard]] auto slice_of(Samples&& samples, const Slice& slice, std::int64_t batch) {
    const std::span all{samples};
    const SampleRange mine = slice.range(batch, std::ssize(all));
    return all.subspan(static_cast<std::size_t>(mine.first), static_cast<std::size_t>(mine.count));
}

/// Of rows. \param samples  (samples, columns); not copied \returns (samples of this rank, columns)
template <class T>
[[nodiscard]] MatrixView<T> slice_of(const MatrixView<T>& samples, const Slice& slice, std::int64_t batch) {
    const SampleRange mine = slice.range(batch, samples.rows());
    return samples.rows_from(mine.first, mine.count);
}

/// Of bags of ids, which are copied, for a batch has its features one behind the other.
/// \param samples  without keys \returns the bags of this rank's samples, and their weights where there are some
/// \throws BadInput for parts that do not fit together
/// Cost: the ids of the batch. Where bags are given by lengths, all of them are added up: give offsets if samples are
/// many and batches small.
template <class Id>
[[nodiscard]] JaggedBatch<Id> slice_of(const JaggedView<Id>& samples, const Slice& slice, std::int64_t batch) {
    samples.check_sizes();
    if (!samples.keys.empty())
        throw BadInput{"bags with keys to take a slice of: give their features in the layer's order, without keys"};
    const SampleRange mine = slice.range(batch, samples.samples);
    JaggedBatch<Id> part{.samples = mine.count, .features = samples.features};
    std::int64_t bag = 0;
    std::int64_t id = 0;  // the first of `bag`
    const auto go_to = [&](std::int64_t to) {
        if (samples.single()) {
            id = to;
        } else if (!samples.offsets.empty()) {
            id = samples.offsets[static_cast<std::size_t>(to)];
        } else {
            for (; bag != to; ++bag)
                id += samples.lengths[static_cast<std::size_t>(bag)];
        }
        bag = to;
        return id;
    };
    for (std::int64_t feature = 0; feature != samples.features; ++feature) {
        const std::int64_t first = feature * samples.samples + mine.first;
        const std::int64_t begin = go_to(first);
        for (std::int64_t i = first; i != first + mine.count && !samples.single(); ++i)
            part.lengths.push_back(static_cast<std::int32_t>(samples.length(i)));
        const std::int64_t end = go_to(first + mine.count);
        if (begin < 0 || end < begin || end > std::ssize(samples.values)) {
            samples.validate();  // says what is wrong
            throw BadInput{concat({"feature ", feature, ": ids ", begin, " to ", end, " of ", samples.values.size()})};
        }
        part.values.insert(part.values.end(), samples.values.begin() + begin, samples.values.begin() + end);
        if (!samples.weights.empty())
            part.weights.insert(part.weights.end(), samples.weights.begin() + begin, samples.weights.begin() + end);
    }
    return part;
}
/// The same of bags that have their own memory.
template <class Id>
[[nodiscard]] JaggedBatch<Id> slice_of(const JaggedBatch<Id>& samples, const Slice& slice, std::int64_t batch) {
    return slice_of(samples.view(), slice, batch);
}

}  // namespace shardwise::inline SHARDWISE_ABI
