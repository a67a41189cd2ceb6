// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/core/config.hpp"

/// \file
/// The forms of the lanes between the steps of an embedding plan: types that carry no data. A step says by its
/// Out<Form> after which forms it may stand.

namespace shardwise::inline SHARDWISE_ABI {

/// The user's bags.
struct Bags {};
/// Ids by (feature, shard), still where the samples are.
struct ShardIds {};
/// Ids where their rows are; `Home` when that is also where the samples are.
template <bool Home>
struct OwnedIds {};
/// Vectors by (source, feature, shard), where the rows are.
struct OwnedVectors {};
/// Vectors by (source, feature, shard), on a rank between the rows and the samples.
struct RelayedVectors {};
/// Vectors by (feature, shard), where the samples are.
struct HomeVectors {};
/// What a lookup makes of ids; nothing where they are not with their rows.
template <class Form>
struct LookedUp {};
template <>
struct LookedUp<OwnedIds<true>> {
    using type = HomeVectors;
};
template <>
struct LookedUp<OwnedIds<false>> {
    using type = OwnedVectors;
};
/// One result a feature.
struct Outputs {};

}  // namespace shardwise::inline SHARDWISE_ABI
