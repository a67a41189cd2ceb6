// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

#include "shardwise/tower/partition.hpp"

/// \file
/// Features in the plane, as a picture.

namespace partition_towers {

/// An SVG of the features where the partitioner saw them, each in the colour and with the number of its tower.
[[nodiscard]] std::string picture(const shardwise::Partition& partition, const std::vector<std::string>& names,
                                  const std::string& title);

}  // namespace partition_towers
