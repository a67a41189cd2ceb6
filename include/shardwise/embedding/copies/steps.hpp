// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <string>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/copies/lanes.hpp"
#include "shardwise/embedding/copies/synced_rows.hpp"
#include "shardwise/embedding/lanes/states.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/step.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// The plan of a sync: every row and its moments become the mean over its copies. A group holds each table, so it has
/// no group in it but the world of the copies.

namespace shardwise::inline SHARDWISE_ABI {

namespace copies {

struct ToldRows;
struct RowsOfCopies;
struct MeansOfRows;

struct TellFamily {
    using Tapes = boost::mp11::mp_list<ToldRows>;
    using Sees = boost::mp11::mp_list<CopiedShards, const steps::WorkMemory>;
};
SHARDWISE_INLINE const StepCode& step_code(Domain, TellFamily);
struct TakeFamily {
    using Tapes = boost::mp11::mp_list<>;
    using Sees = boost::mp11::mp_list<CopiedShards>;
};
SHARDWISE_INLINE const StepCode& step_code(Domain, TakeFamily);
struct GatherFamily {
    using Tapes = boost::mp11::mp_list<RowsOfCopies>;
    using Sees = boost::mp11::mp_list<CopiedShards, const steps::WorkMemory>;
};
SHARDWISE_INLINE const StepCode& step_code(Domain, GatherFamily);
struct SpreadFamily {
    using Tapes = boost::mp11::mp_list<MeansOfRows>;
    using Sees = boost::mp11::mp_list<CopiedShards>;
};
SHARDWISE_INLINE const StepCode& step_code(Domain, SpreadFamily);

/// Every copy tells the others which rows it touched; its marks are clear then. One message a copy: 4 bytes a shard of
/// control, 4 a row of payload.
struct TellTouched {
    template <std::same_as<Apart> Form>
    using Out = Known;
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<TellTouched>;
    using Crosses = World;
    using Family = TellFamily;
    using Sees = Family::Sees;
    using Tape = ToldRows;
    static std::string name() { return "TellTouched"; }
};
/// All rows, whoever touched them. Local.
struct TakeAllRows {
    template <std::same_as<Apart> Form>
    using Out = Known;
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<>;
    using Family = TakeFamily;
    using Sees = Family::Sees;
    static std::string name() { return "TakeAllRows"; }
};
/// Rows and their moments from the copies that touched them to the one that makes the mean (see averager_of), which
/// makes it. One message a copy: 4 bytes a float of payload.
struct GatherCopies {
    template <std::same_as<Known> Form>
    using Out = Averaged;
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<GatherCopies>;
    using Crosses = World;
    using Family = GatherFamily;
    using Sees = Family::Sees;
    using Tape = RowsOfCopies;
    static std::string name() { return "GatherCopies"; }
};
/// Means from the copies that made them to all others. One message a copy: 4 bytes a float of payload.
struct SpreadMeans {
    template <std::same_as<Averaged> Form>
    using Out = Equal;
    using Adjoint = Plan<>;
    using Uses = boost::mp11::mp_list<SpreadMeans>;
    using Crosses = World;
    using Family = SpreadFamily;
    using Sees = Family::Sees;
    using Tape = MeansOfRows;
    static std::string name() { return "SpreadMeans"; }
};

/// The plan of a sync of these rows.
template <class Rows>
struct SyncPlan;
/// Copies tell each other what they touched.
template <>
struct SyncPlan<TouchedRows> {
    using type = Plan<TellTouched, GatherCopies, SpreadMeans>;
};
/// Nobody tells anything: all rows move.
template <>
struct SyncPlan<AllRows> {
    using type = Plan<TakeAllRows, GatherCopies, SpreadMeans>;
};

}  // namespace copies

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/copies/steps.ipp"
#endif
