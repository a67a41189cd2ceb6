// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/core/config.hpp"
#include "shardwise/dense/cross_interaction.hpp"
#include "shardwise/dense/dense_model.hpp"

/// \file
/// The dense part of DCN v2: bottom MLP, a cross network over its result and the embeddings, top MLP (Wang et al., DCN
/// V2, 2021, the stacked form, as TorchRec's DLRM_DCN).

namespace shardwise::inline SHARDWISE_ABI {

/// Shapes of a DCN.
using DcnConfig = DenseModelConfig<CrossInteraction>;
/// The dense part of a DCN.
using DcnDense = DenseModel<CrossInteraction>;

}  // namespace shardwise::inline SHARDWISE_ABI
