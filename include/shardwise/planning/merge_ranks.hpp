// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/source_location.hpp"
#include "shardwise/planning/access_profile.hpp"

/// \file
/// One profile of what all ranks have seen.

namespace shardwise::inline SHARDWISE_ABI {

/// merged() of all ranks' profiles, the same on every rank. Each row is added up on one rank, row mod ranks, and the
/// sums go to all.
///
/// Collective. Five rounds: of each rank one message a peer in each. With R ranks and T tables, a rank sends to each
/// peer the names and numbers of its tables; 8 (1 + 2 T) bytes of totals; 8 T bytes of sizes; 24 bytes for each row
/// that it has seen and the peer adds up, one in R as a rule; and 24 bytes for each table and for each row that it adds
/// up itself. So what a rank sends is about 24 (R - 1) / R bytes a row that it has seen, and as much a row that any
/// rank has seen. Memory: the result, and a second time its rows while they arrive. \throws BadInput on every rank when
/// the ranks' tables are not the same
[[nodiscard]] AccessProfile merged_across_ranks(CommunicatorRef comm, const AccessProfile& mine,
                                                const SourceLocation& where = SourceLocation::current());

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/planning/merge_ranks.ipp"
#endif
