// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/core/config.hpp"

/// \file
/// Which rows a sync of copies moves, as types: of Groups<>, and of the plan of a sync.

namespace shardwise::inline SHARDWISE_ABI {

/// Those that some copy touched since the last one.
struct TouchedRows {
    static constexpr const char* name = "touched";
};
/// All rows, touched or not.
struct AllRows {
    static constexpr const char* name = "all";
};

}  // namespace shardwise::inline SHARDWISE_ABI
