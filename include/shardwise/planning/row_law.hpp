// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string_view>

#include "shardwise/core/config.hpp"
#include "shardwise/planning/row_distribution.hpp"

/// \file
/// Distributions by name: laws of p by a row's rank i = 1 .. E in the order of frequency.

namespace shardwise::inline SHARDWISE_ABI {

/// The distribution that a law says, as text: a name and numbers, parted by colons.
///
/// The p of row i is
/// - `slopes:E:n1:n2:n3:p1:s0:s1:s2:s3`: a power law in four pieces, continuous, with p(n1) = p1: min(1, p1 *
///   (i/n1)^-s0) up to n1, then exponent s1 up to n2, s2 up to n3, s3 up to E;
/// - `zipf_mandelbrot:E:s:q:c`: min(1, c / (i + q)^s);
/// - `zipf:E[:s[:L]]`: proportional to i^-s;
/// - `exponential:E:scale[:L]`: proportional to e^(-i/scale);
/// - `half_normal:E:scale[:L]`: proportional to e^(-(i/scale)^2).
///
/// E is the number of rows. The last three are scaled so that all rows together have L look-ups a sample; s and L
/// are 1 where they are left out.
///
/// Neighbouring rows whose p differs by less than one part in 10^6 share a run, with the mean of its first and last p.
/// Power laws so have one run a row up to about row 10^6, and counts of rows that follow from them are exact there and
/// within one part in 10^6 beyond; E = 30 M takes 5 M runs (80 MB) and a fraction of a second. \throws BadInput for
/// an unknown name, or numbers that it does not take
[[nodiscard]] RowDistribution row_law(std::string_view text);

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/planning/row_law.ipp"
#endif
