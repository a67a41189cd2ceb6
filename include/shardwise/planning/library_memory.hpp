// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/planning/row_costs.hpp"
#include "shardwise/planning/scaling.hpp"

/// \file
/// The memory that a row takes in this library, beside what FlexShard's paper says of its own.

namespace shardwise::inline SHARDWISE_ABI {

/// What a row takes on a rank, in the mean over ranks, of a layer Tiered<DP, Flex, Row> of sequences:
/// - static bytes: its weights and the optimizer's state, on all ranks (dp), one in a host (flex) or one (row); and the
///   map that finds its tier, of rows that are in no order: 8/35 of a byte, and 8 bytes where it is replicated;
/// - dynamic bytes: those that a look-up needs, and those that the row needs once samples of a rank, of a host or of
///   any rank have touched it, as the expectation reader says of a table of such rows. Of the rounds that share the
///   buffer of a message, those of vectors are taken to need most. The share of samples that hold a row of p look-ups a
///   sample is 1 - e^-p, as where ids are drawn independently.
///
/// Buffers take up to an eighth more, since they come in eighths of powers of two. Of what `scaling` has, topology and
/// batch are read.
/// Cost: milliseconds a dimension, when a row of it is first asked for. The value is not thread safe.
/// \param names  of the layer: its optimizer, order, collective and wires are read
/// \throws BadInput as checked(scaling), and for names that there are not or that make no sense together
[[nodiscard]] RowMemory library_row_memory(const Scaling& scaling, const LayerNames& names = {});

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/planning/library_memory.ipp"
#endif
