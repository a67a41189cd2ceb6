// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// What metrics of binary labels require of their input.

namespace shardwise::inline SHARDWISE_ABI {

/// Checks that there is a label for every prediction and that each is 0 or 1. \throws BadInput naming sample and value
inline void require_binary_labels(std::size_t predictions, std::span<const float> labels) {
    if (predictions != labels.size())
        throw BadInput{
            concat({predictions, " predictions with ", labels.size(), " labels: give one label a prediction"})};
    for (std::size_t i = 0; i != labels.size(); ++i) {
        if (labels[i] == 0.0F || labels[i] == 1.0F) continue;
        char text[32];
        std::snprintf(text, sizeof text, "%.9g", static_cast<double>(labels[i]));
        throw BadInput{concat({"sample ", i, ": a label of ", text, ", expected 0 or 1"})};
    }
}

}  // namespace shardwise::inline SHARDWISE_ABI
