// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "count.hpp"
#include "options.hpp"

/// \file
/// What a profile says, as a table and as JSON.

namespace profile_rows {

[[nodiscard]] nlohmann::json to_json(const Profiles& profiles, const Options& options);
[[nodiscard]] std::string to_table(const Profiles& profiles, const Options& options);

}  // namespace profile_rows
