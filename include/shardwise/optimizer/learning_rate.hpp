// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "shardwise/core/config.hpp"
#include "shardwise/core/digest.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// Learning rates that change with the step.

namespace shardwise::inline SHARDWISE_ABI {

/// A learning rate by step (counted from 1): a linear warm-up, then constant, in steps, or a polynomial decay.
struct LearningRate {
    enum class Decay : std::uint8_t { none, step, polynomial };

    float base = 0.01F;
    std::int64_t warmup = 0;  ///< steps of the linear ramp from base / warmup to base
    Decay decay = Decay::none;
    std::int64_t decay_start = 0;  ///< polynomial: the step after which it decays; step: counted from here
    std::int64_t decay_steps = 1;  ///< polynomial: length of the decay; step: steps between two drops
    float decay_factor = 0.1F;     ///< step: factor of each drop
    float decay_power = 2.0F;      ///< polynomial
    float end = 0.0F;              ///< polynomial: reached after the decay, and kept

    /// The rate of step `step`: warm-up base * step / warmup; step base * factor^floor((step - start) / steps);
    /// polynomial end + (base - end) * (1 - (step - start) / steps)^power.
    [[nodiscard]] float at(std::int64_t step) const {
        if (step <= warmup)
            return static_cast<float>(static_cast<double>(base) * static_cast<double>(step) /
                                      static_cast<double>(warmup));
        if (decay == Decay::none || step <= decay_start) return base;
        const std::int64_t since = step - decay_start;
        if (decay == Decay::step) {
            double rate = base;
            for (std::int64_t drop = since / decay_steps; drop > 0; --drop) {
                const double dropped = rate * decay_factor;
                if (dropped == rate) break;  // 0, as a rule: a checkpoint's number of steps may be anything
                rate = dropped;
            }
            return static_cast<float>(rate);
        }
        if (since >= decay_steps) return end;
        const double left = 1.0 - static_cast<double>(since) / static_cast<double>(decay_steps);
        return static_cast<float>(std::fma(static_cast<double>(base) - end, std::pow(left, decay_power), end));
    }

    /// Checks the schedule.
    /// \throws BadInput for numbers that make no schedule, naming the field and its value
    void check() const {
        const auto require = [](const char* field, auto value, bool is) {
            if (!is) throw BadInput{concat({"learning rate: ", field, " is ", value})};
        };
        require("base", base, std::isfinite(base) && base >= 0.0F);
        require("end", end, std::isfinite(end) && end >= 0.0F);
        require("warmup", warmup, warmup >= 0);
        require("decay_start", decay_start, decay_start >= 0);
        require("decay_steps", decay_steps, decay_steps >= 1);
        require("decay_factor", decay_factor, std::isfinite(decay_factor) && decay_factor >= 0.0F);
        require("decay_power", decay_power, std::isfinite(decay_power) && decay_power >= 0.0F);
    }
    /// Adds all of the schedule to a digest.
    void add_to(Digest& digest) const {
        digest.add(base).add(warmup).add(static_cast<std::int64_t>(decay)).add(decay_start).add(decay_steps);
        digest.add(decay_factor).add(decay_power).add(end);
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI
