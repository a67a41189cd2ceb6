// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "shardwise/comm/one_sided.hpp"
#include "shardwise/comm/slot_memory.hpp"
#include "shardwise/comm/thread_communicator.hpp"
#include "shardwise/comm/thread_state.hpp"
#include "shardwise/comm/window_list.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// Slots of ranks that are threads: the sender packs into the receiver's memory.

namespace shardwise::inline SHARDWISE_ABI {

/// One rank's slots in a ThreadWorld. Satisfies OneSided. A put is a store; messages are not copied. Slots live until
/// every rank has destroyed its ThreadSlots.
class ThreadSlots {
  public:
    /// \param comm  outlives this
    explicit ThreadSlots(ThreadCommunicator& comm)
        : comm_{&comm}, state_{comm.state_}, waiting_(static_cast<std::size_t>(comm.size())) {}
    ThreadSlots(const ThreadSlots&) = delete;
    ThreadSlots& operator=(const ThreadSlots&) = delete;

    [[nodiscard]] int rank() const noexcept { return comm_->rank(); }
    [[nodiscard]] int size() const noexcept { return comm_->size(); }
    [[nodiscard]] Topology topology() const noexcept { return comm_->topology(); }

    /// Of the slots of this rank, in all windows.
    [[nodiscard]] std::int64_t bytes() const noexcept {
        std::int64_t sum = 0;
        for (const Window* window : windows_.all())
            sum += (*window)[static_cast<std::size_t>(rank())]->bytes();
        return sum;
    }

    [[nodiscard]] int open(const SlotLayout& layout);
    [[nodiscard]] std::span<std::byte> room(const SlotId& id) { return memory(id, id.peer).room(rank(), id.slot); }
    void put(const SlotId& id, std::uint64_t tag, std::int64_t bytes) {
        memory(id, id.peer).put(rank(), id.slot, tag, bytes);
        waiting_[static_cast<std::size_t>(id.peer)].store(true, std::memory_order_release);
    }
    /// Wakes the receivers of what was put.
    void flush();
    [[nodiscard]] bool has(const SlotId& id, std::uint64_t tag) {
        return memory(id, rank()).has(id.peer, id.slot, tag);
    }
    [[nodiscard]] std::span<const std::byte> message(const SlotId& id) {
        return memory(id, rank()).message(id.peer, id.slot);
    }
    void progress(SlotWait& wait) { wait.seen = bell().rung(); }
    void pause(SlotWait& wait);
    void wake();
    [[nodiscard]] bool any_thread() const noexcept { return true; }

  private:
    using Window = std::vector<std::shared_ptr<detail::SlotMemory>>;  // (rank)
    [[nodiscard]] detail::SlotMemory& memory(const SlotId& id, int of) {
        return *windows_[id.window][static_cast<std::size_t>(of)];
    }
    [[nodiscard]] detail::Doorbell& bell() { return state_->wake[static_cast<std::size_t>(rank())]; }
    void pause(SlotWait& wait, std::unique_lock<std::mutex>& lock);

    ThreadCommunicator* comm_;
    detail::ThreadWorldState* state_;
    detail::WindowList<Window> windows_;
    std::vector<std::atomic<bool>> waiting_;  // (rank): something was put there since the last flush
};

static_assert(OneSided<ThreadSlots>);

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/comm/thread_slots.ipp"
#endif
