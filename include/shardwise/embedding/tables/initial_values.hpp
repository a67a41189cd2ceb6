// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "shardwise/core/config.hpp"
#include "shardwise/core/digest.hpp"
#include "shardwise/core/split_mix.hpp"
#include "shardwise/embedding/tables/initial_weight.hpp"

/// \file
/// How the weights of a table begin.

namespace shardwise::inline SHARDWISE_ABI {

/// A law of initial weights. Each weight is a pure function of (seed, table, row, column), so a table begins with the
/// same weights wherever its rows are placed.
class InitialValues {
  public:
    enum class Law : std::uint8_t { uniform, normal, constant };

    /// Uniform in [-1 / sqrt(rows), 1 / sqrt(rows)), as PyTorch's DLRM has it.
    InitialValues() = default;
    /// Uniform in [-bound, bound).
    [[nodiscard]] static InitialValues uniform(float bound) { return {Law::uniform, 0.0F, bound}; }
    /// Normal, by the transform of Box and Muller in double precision: std::log and std::cos of another math library
    /// may give another last bit.
    [[nodiscard]] static InitialValues normal(float deviation, float mean = 0.0F) {
        return {Law::normal, mean, deviation};
    }
    [[nodiscard]] static InitialValues constant(float value) { return {Law::constant, value, 0.0F}; }
    [[nodiscard]] static InitialValues zero() { return constant(0.0F); }

    [[nodiscard]] Law law() const noexcept { return law_; }
    /// Of a normal law, or the constant.
    [[nodiscard]] float mean() const noexcept { return mean_; }
    /// Bound of a uniform law, or deviation of a normal one. \param rows  of the table
    [[nodiscard]] float spread(std::int64_t rows) const {
        return own_ ? spread_ : 1.0F / std::sqrt(static_cast<float>(rows));
    }
    /// Whether the numbers make a law: finite, and a spread of 0 or more.
    [[nodiscard]] bool fits() const { return std::isfinite(mean_) && std::isfinite(spread_) && spread_ >= 0.0F; }
    void add_to(Digest& digest) const {
        digest.add(static_cast<std::int64_t>(law_)).add(std::int64_t{own_ ? 1 : 0}).add(mean_).add(spread_);
    }

    /// \param rows  of the table
    [[nodiscard]] float at(std::uint64_t seed, int table, std::int64_t rows, std::int64_t row, int column) const {
        switch (law_) {
            case Law::uniform:
                return initial_weight(seed, table, row, column, spread(rows));
            case Law::normal: {
                const std::uint64_t bits = initial_bits(seed, table, row, column);
                constexpr double unit = 0x1p-53;
                const double radius = (static_cast<double>(bits >> 11U) + 1.0) * unit;  // (0, 1]
                const double angle = static_cast<double>(split_mix(bits + split_mix_step) >> 11U) * unit;
                const double normal = std::sqrt(-2.0 * std::log(radius)) * std::cos(2.0 * std::numbers::pi * angle);
                return static_cast<float>(std::fma(normal, static_cast<double>(spread_), static_cast<double>(mean_)));
            }
            case Law::constant:
                return mean_;
        }
        return mean_;
    }

  private:
    InitialValues(Law law, float mean, float spread) : law_{law}, own_{true}, mean_{mean}, spread_{spread} {}

    Law law_ = Law::uniform;
    bool own_ = false;  // numbers, instead of 1 / sqrt(rows)
    float mean_ = 0.0F;
    float spread_ = 0.0F;
};

}  // namespace shardwise::inline SHARDWISE_ABI
