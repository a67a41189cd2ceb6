// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// EXPECT: a Buffer moves its elements as bytes
#include <string>

#include "shardwise/core/buffer.hpp"

#ifndef SHARDWISE_EXPECT_FAIL
using Content = char;
#else
using Content = std::string;
#endif

int main() {
    shardwise::Buffer<Content> buffer;
    buffer.resize(3);
    shardwise::Buffer<Content> other = std::move(buffer);
    return static_cast<int>(other.size());
}
