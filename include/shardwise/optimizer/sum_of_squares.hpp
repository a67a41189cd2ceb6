// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>

#include "shardwise/core/config.hpp"

/// \file
/// The sum of squares of a gradient row, in one fixed order.

namespace shardwise::inline SHARDWISE_ABI {

/// In double precision, where products of floats are exact: eight lanes (element i goes to lane i % 8), each summed in
/// order from 0, then the lanes in order. `gradient` has `dim` elements.
[[nodiscard]] SHARDWISE_HOST_DEVICE inline double sum_of_squares(const float* gradient, int dim) noexcept {
    double lanes[8] = {};
    int i = 0;
#if defined(__CUDA_ARCH__)
    for (; i + 8 <= dim; i += 8)
        for (int lane = 0; lane < 8; ++lane) {
            const double g = gradient[i + lane];
            lanes[lane] = std::fma(g, g, lanes[lane]);
        }
#else
    // Two of four: one of eight goes by way of memory before AVX-512. Of these initializers, and not of a conversion of
    // a vector, GCC 12 makes one instruction each.
    using Doubles [[gnu::vector_size(32)]] = double;
    Doubles low{};
    Doubles high{};
    for (; i + 8 <= dim; i += 8) {  // the product is exact: fused or not, the sum rounds once
        const float* const g = gradient + i;
        const Doubles a{g[0], g[1], g[2], g[3]};
        const Doubles b{g[4], g[5], g[6], g[7]};
        low += a * a;
        high += b * b;
    }
    if (i == dim)  // all in registers
        return low[0] + low[1] + low[2] + low[3] + high[0] + high[1] + high[2] + high[3];
    for (int lane = 0; lane < 4; ++lane) {
        lanes[lane] = low[lane];
        lanes[lane + 4] = high[lane];
    }
#endif
    for (int lane = 0; i + lane < dim; ++lane) {
        const double g = gradient[i + lane];
        lanes[lane] = std::fma(g, g, lanes[lane]);
    }
    double sum = 0.0;
    for (const double lane : lanes)
        sum += lane;
    return sum;
}

}  // namespace shardwise::inline SHARDWISE_ABI
