// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstdint>

#include "shardwise/core/config.hpp"

/// \file
/// What a moving average that starts at 0 lacks after some steps; of Adam's two moments, sparse and dense.

namespace shardwise::inline SHARDWISE_ABI {

/// 1 - beta^steps. The power is made by squaring, so that its bits do not depend on a math library, and the difference
/// is written so that no compiler fuses it with the power's last product.
[[nodiscard]] SHARDWISE_HOST_DEVICE inline double bias_correction(double beta, std::int64_t steps) noexcept {
    double power = 1.0;
    for (; steps > 0; steps /= 2, beta *= beta)
        if (steps % 2 == 1) power *= beta;
    return std::fma(-power, 1.0, 1.0);
}

}  // namespace shardwise::inline SHARDWISE_ABI
