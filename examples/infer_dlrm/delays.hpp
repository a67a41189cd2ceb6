// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>

/// \file
/// Ranks that are late now and then.

namespace infer_dlrm {

/// How long a rank waits before it starts a batch, in milliseconds.
struct Delay {
    enum class Law { none, uniform, exponential, constant };

    Law law = Law::none;
    double low = 0;   ///< uniform: at least
    double high = 0;  ///< uniform: at most
    double mean = 0;  ///< exponential, and constant
    int rank = -1;    ///< that is late; -1: all are

    /// Of a batch, of a rank that is late.
    [[nodiscard]] double expected() const noexcept;
};

/// "uniform:0:10ms", "exponential:2ms", "constant:5ms", and behind each "@3": of rank 3 alone. Units are us, ms and s.
/// \throws BadInput for anything else
[[nodiscard]] Delay parse_delay(const std::string& text);

/// The delays of a rank, a pure function of seed and rank.
class Delays {
  public:
    Delays(const Delay& delay, std::uint64_t seed, int rank);
    /// Waits, sleeping first and then looking at the clock: sleeping alone takes too long. \returns milliseconds
    double wait();

  private:
    Delay delay_;
    std::mt19937_64 dice_;
};

}  // namespace infer_dlrm
