// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/core/config.hpp"

/// \file
/// How many slots an ordered pair of ranks needs so that none is written before it was read, where ranks may be k
/// exchanges apart and nobody acknowledges. One less is too few, for every k and any number of ranks: tests check both
/// with the models of tests/bounded_lag. (Bounded lag, section III-C, says k: that is too few.)

namespace shardwise::inline SHARDWISE_ABI {

/// How many exchanges a rank has under way at most: it starts the next only once it has read the oldest.
[[nodiscard]] constexpr int outstanding_exchanges(int k) noexcept {
    return k + 1;
}
/// Of one exchange, all to all. A rank that starts exchange j + n has read j + n - k - 1, of which every peer's message
/// came after that peer had read all up to j + n - 2k - 2: which has to be j.
[[nodiscard]] constexpr int exchange_slots(int k) noexcept {
    return 2 * k + 2;
}
/// Of two exchanges, requests and their answers: an answer tells that its request was read, and the request k + 1
/// further on that the answer was.
[[nodiscard]] constexpr int request_slots(int k) noexcept {
    return k + 1;
}
/// The same of answers.
[[nodiscard]] constexpr int answer_slots(int k) noexcept {
    return k + 1;
}
/// Of what says that a rank has nothing more to ask for: a rank says so again only once all others have.
[[nodiscard]] constexpr int drain_slots() noexcept {
    return 2;
}

}  // namespace shardwise::inline SHARDWISE_ABI
