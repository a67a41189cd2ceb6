// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/core/config.hpp"
#include "shardwise/dense/dense_model.hpp"
#include "shardwise/dense/interaction.hpp"

/// \file
/// The dense part of DLRM: bottom MLP, pairwise dots with the embeddings, top MLP (Naumov et al., 2019).

namespace shardwise::inline SHARDWISE_ABI {

/// Shapes of a DLRM.
using DlrmConfig = DenseModelConfig<DotInteraction>;
/// The dense part of DLRM.
using DlrmDense = DenseModel<DotInteraction>;

}  // namespace shardwise::inline SHARDWISE_ABI
