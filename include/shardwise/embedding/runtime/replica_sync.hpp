// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/source_location.hpp"
#include "shardwise/embedding/copies/lanes.hpp"
#include "shardwise/embedding/lanes/states.hpp"
#include "shardwise/embedding/runtime/layer_groups.hpp"
#include "shardwise/embedding/tables/store.hpp"
#include "shardwise/embedding/tables/touched_marks.hpp"
#include "shardwise/plan/flight.hpp"
#include "shardwise/plan/frame.hpp"
#include "shardwise/plan/itinerary.hpp"
#include "shardwise/plan/trace.hpp"

/// \file
/// The syncs of a layer's copies on one rank: a flight among the copies, one round at a time.

namespace shardwise::inline SHARDWISE_ABI::detail {

/// `start` and `advance` are collective: all ranks call them at the same place of their programs, so that no
/// round depends on when messages arrive.
class ReplicaSync {
  public:
    /// \param stores, marks  (part); outlive this, as do groups
    ReplicaSync(const LayerGroups& groups, std::span<Store> stores, std::span<TouchedMarks> marks, CommunicatorRef comm,
                std::pmr::memory_resource& memory)
        : shards_{shards_of(stores, marks)},
          work_{&memory},
          itinerary_{groups.sync, groups.ranks.between_copies(), groups.ranks.of_copies(), comm.rank()},
          frame_{groups.sync, states()},
          flight_{itinerary_, frame_.parts(), comm, memory} {}
    ReplicaSync(const ReplicaSync&) = delete;
    ReplicaSync& operator=(const ReplicaSync&) = delete;
    /// Waits for the round that is under way: others may still read what it sends.
    ~ReplicaSync() { flight_.leave(); }

    void trace(Tracer* tracer) noexcept { flight_.trace(tracer, SpanOf::sync); }
    /// See Flight::count.
    void count(std::span<std::int64_t> payload) noexcept { flight_.count(payload); }
    [[nodiscard]] bool under_way() const noexcept { return flight_.active(); }
    /// Sends the first round.
    void start(std::uint32_t number, std::uint16_t digest, const SourceLocation& where) {
        flight_.called_from(where);
        flight_.prepare(number, digest);
        flight_.start();
    }
    /// Completes the round that is under way and sends the next. \returns whether there is one
    bool advance() { return flight_.proceed(); }

  private:
    static copies::CopiedShards shards_of(std::span<Store> stores, std::span<TouchedMarks> marks) {
        copies::CopiedShards all;
        for (std::size_t part = 0; part < stores.size(); ++part) {
            all.element_slots = stores[part].element_slots();
            all.row_slots = stores[part].row_slots();
            int slot = 0;
            for (ShardStore& shard : stores[part].shards())
                all.shards.push_back({.store = &shard, .marks = &marks[part], .slot = slot++});
        }
        return all;
    }
    [[nodiscard]] States states() {
        States all;
        all.bind({}, shards_);
        all.bind({}, work_);
        return all;
    }

    copies::CopiedShards shards_;
    steps::WorkMemory work_;
    Itinerary itinerary_;
    Frame<copies::Lanes> frame_;
    Flight flight_;
};

}  // namespace shardwise::inline SHARDWISE_ABI::detail
