// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/core/config.hpp"

/// \file
/// Where memory and kernels live.

namespace shardwise::inline SHARDWISE_ABI {

/// Main memory, the processor's cores.
struct Host {
    static constexpr const char* name = "host";
};
/// A CUDA device's memory and its kernels.
struct Cuda {
    static constexpr const char* name = "cuda";
};

}  // namespace shardwise::inline SHARDWISE_ABI
