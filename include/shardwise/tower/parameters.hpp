// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <limits>
#include <memory_resource>
#include <string>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/dense/parameter.hpp"
#include "shardwise/embedding/lanes/towers.hpp"

/// \file
/// What the modules of towers have in common.

namespace shardwise::inline SHARDWISE_ABI {

/// How many times as much a tower's features have as its module lets travel on: sum of their elements by columns of the
/// result, over all towers of a layer (Disaggregated Multi-Tower, section 4).
[[nodiscard]] inline double compression(const TowerModules& towers) {
    std::int64_t in = 0;
    std::int64_t out = 0;
    for (std::size_t t = 0; t < towers.shapes.size(); ++t) {
        in += towers.shapes[t].width();
        out += towers.outputs[t];
    }
    return static_cast<double>(in) / static_cast<double>(out);
}

namespace detail {

/// The seed of a tower's parameters, so that towers of one shape start apart.
[[nodiscard]] inline std::uint64_t tower_seed(std::uint64_t seed, const TowerShape& shape) {
    return seed + 0x9e3779b97f4a7c15U * (static_cast<std::uint64_t>(shape.tower) + 1);
}

/// vectors * dimension, as an int.
[[nodiscard]] inline int tower_columns(const std::string& what, const TowerShape& shape, std::int64_t vectors,
                                       std::int64_t dimension) {
    constexpr std::int64_t most = std::numeric_limits<int>::max();
    if (vectors > most / dimension)
        throw BadInput{
            concat({what, " has more than ", most, " columns in tower ", shape.tower, ": give smaller numbers"})};
    return static_cast<int>(vectors * dimension);
}

/// Calls use(set, parts) with the parameters of a module reserved, and no memory for them.
template <class Parts, class Config, class Use>
auto with_parameters(const Config& config, const TowerShape& shape, Use use) {
    ParameterSet set{*std::pmr::null_memory_resource()};
    const Parts parts{set, config, shape};
    return use(set, parts);
}

}  // namespace detail

}  // namespace shardwise::inline SHARDWISE_ABI
