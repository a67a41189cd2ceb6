// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// EXPECT: -ffast-math would change the order of sums
#ifdef SHARDWISE_EXPECT_FAIL
#define __FAST_MATH__ 1  // NOLINT: as the compiler does for -ffast-math
#endif
#include "shardwise/core/config.hpp"

int main() {}
