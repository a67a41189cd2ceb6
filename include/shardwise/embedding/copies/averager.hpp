// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include "shardwise/core/config.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// The mean of a row over its copies: which of them makes it, and how.

namespace shardwise::inline SHARDWISE_ABI {

/// Which of the copies of a row makes their mean. Copies that did not touch the row still agree on it, so that one of
/// them knows the values of all those; rows are dealt among them in turn. Where all copies touched it, among all.
/// \param touched  touched(copy): whether it has changed since all copies were equal
template <class Touched>
[[nodiscard]] int averager_of(std::int64_t row, int copies, Touched touched) {
    int untouched = 0;
    for (int copy = 0; copy < copies; ++copy)
        untouched += touched(copy) ? 0 : 1;
    if (untouched == 0) return static_cast<int>(row % copies);
    auto left = static_cast<int>(row % untouched);
    int copy = 0;
    while (touched(copy) || left-- > 0)
        ++copy;
    return copy;
}

/// mean[i] of `count` numbers of each copy: summed in double, on each host of `topology` from its first copy on, then
/// over hosts from the first on; divided, and rounded once. The mean of equal floats is that float, and -0.0 stays.
/// \param copies  (copy of the topology): its numbers; `mean` may be among them
/// \param scratch  2 * count doubles
inline void mean_of_copies(const float* const* copies, const Topology& topology, std::int64_t count, double* scratch,
                           float* mean) {
    double* const total = scratch;
    double* const host = scratch + count;
    for (int h = 0; h < topology.hosts; ++h) {
        double* const sum = h == 0 ? total : host;
        for (int local = 0; local < topology.ranks_per_host; ++local) {
            const float* const from = copies[topology.rank_of(h, local)];
            if (local == 0)
                for (std::int64_t i = 0; i < count; ++i)
                    sum[i] = from[i];
            else
                for (std::int64_t i = 0; i < count; ++i)
                    sum[i] += from[i];
        }
        if (h != 0)
            for (std::int64_t i = 0; i < count; ++i)
                total[i] += host[i];
    }
    const double all = topology.ranks();
    for (std::int64_t i = 0; i < count; ++i)
        mean[i] = static_cast<float>(total[i] / all);
}

}  // namespace shardwise::inline SHARDWISE_ABI
