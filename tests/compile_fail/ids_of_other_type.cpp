// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// EXPECT: ids are std::int32_t or std::int64_t
#include <cstdint>

#include "shardwise/core/jagged.hpp"

#ifndef SHARDWISE_EXPECT_FAIL
using Id = std::int32_t;
#else
using Id = std::uint32_t;
#endif

int main() {
    const shardwise::JaggedView<Id> batch;
    batch.validate();
}
