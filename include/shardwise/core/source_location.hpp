// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/core/config.hpp"

/// \file
/// A place in a source file; std::source_location for compilers that do not have it yet.

namespace shardwise::inline SHARDWISE_ABI {

/// File and line of a call, taken by a default argument.
struct SourceLocation {
    const char* file = "";
    int line = 0;

    [[nodiscard]] static constexpr SourceLocation current(const char* file = __builtin_FILE(),
                                                          int line = __builtin_LINE()) noexcept {
        return {file, line};
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI
