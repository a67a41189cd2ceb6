// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

/// \file
/// Settings in a report: as they were given, and null where they had no effect.

namespace train_dlrm {

/// The number that a float was read from: 0.05, and not 0.05000000074505806.
[[nodiscard]] inline double as_given(float number) {
    return std::strtod(fmt::format("{}", number).c_str(), nullptr);
}

/// Null where the setting had no effect.
template <class Value>
[[nodiscard]] nlohmann::json where(bool had_effect, Value&& value) {
    return had_effect ? nlohmann::json(std::forward<Value>(value)) : nlohmann::json();
}

}  // namespace train_dlrm
