// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "shardwise/comm/mpi_environment.hpp"
#include "shardwise/comm/mpi_pause.hpp"
#include "shardwise/comm/mpi_topology.hpp"
#include "shardwise/comm/mpi_windows.hpp"
#include "shardwise/comm/one_sided.hpp"
#include "shardwise/comm/slot_memory.hpp"
#include "shardwise/comm/window_list.hpp"
#include "shardwise/core/at.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// Slots of the ranks of an MPI job: memory that a host's ranks share, and windows of MPI across.

namespace shardwise::inline SHARDWISE_ABI {

/// One rank's slots in an MPI job. Satisfies OneSided. Ranks of a host pack into each other's memory
/// (MPI_Win_allocate_shared), without a call of MPI. Across hosts a message is packed at home; a flush puts it, waits
/// until it is there (MPI_Put, MPI_Win_flush), and then puts its tag. Receivers poll: for about 0.1 ms, then yielding,
/// then sleeping in between.
///
/// Constructing, `open` and destroying are collective. Of any threads where all ranks share a host; across, where MPI
/// has MPI_THREAD_SERIALIZED, which MpiEnvironment asks for, and then threads take turns (MpiTurn). Progress is made
/// inside calls.
/// Cost: within a host a store a put. Across, two operations of MPI a put, of its bytes and 8, and a wait for both.
/// Memory: the slots, and what leaves for other hosts.
class MpiSlots {
  public:
    /// \throws BadInput on all ranks as MpiCommunicator's constructor; Error where MPI's windows are of no use across
    ///         hosts: of separate memory, or Open MPI's osc/ucx, which gets stuck
    explicit MpiSlots(const MpiOptions& options = {})
        : deadline_{options.deadline},
          comm_{options.comm},
          rank_{comm_.rank()},
          topology_{detail::mpi_topology(comm_.get(), options)},
          least_idle_{least_idle(topology_)},
          uncaught_{std::uncaught_exceptions()} {
        if (topology_.hosts == 1) return;
        detail::refuse_ucx_windows();
        if (any_thread()) MpiTurn::begin();
    }
    MpiSlots(const MpiSlots&) = delete;
    MpiSlots& operator=(const MpiSlots&) = delete;
    ~MpiSlots() {
        if (std::uncaught_exceptions() > uncaught_) {  // nobody will free them with this rank: MPI is left to itself
            for (detail::MpiWindow* window : windows_.all())
                window->release();
            comm_.release();
        }
    }

    [[nodiscard]] int rank() const noexcept { return rank_; }
    [[nodiscard]] int size() const noexcept { return topology_.ranks(); }
    [[nodiscard]] Topology topology() const noexcept { return topology_; }
    /// Of the slots of this rank, in all windows.
    [[nodiscard]] std::int64_t bytes() const noexcept {
        std::int64_t sum = 0;
        for (const detail::MpiWindow* window : windows_.all())
            sum += window->bytes();
        return sum;
    }

    [[nodiscard]] int open(const SlotLayout& layout) {
        detail::check_layout(layout, size());
        if (topology_.hosts > 1) meet();
        const MpiTurn turn;  // nobody needs an answer of this rank's thread: all are in here
        return windows_.add(std::make_unique<detail::MpiWindow>(comm_.get(), topology_, rank_, layout));
    }
    [[nodiscard]] std::span<std::byte> room(const SlotId& id) { return window(id).room(id); }
    void put(const SlotId& id, std::uint64_t tag, std::int64_t bytes) {
        if (!window(id).put(id, tag, bytes)) return;
        const MpiTurn turn;
        leaving_.push_back(id);
    }
    /// What leaves for other hosts, by whichever thread: first the messages, then, once they are there, their tags.
    void flush() {
        if (topology_.hosts == 1) return;
        const MpiTurn turn;
        for (const SlotId& id : leaving_)
            window(id).send(id);
        for (const SlotId& id : leaving_)
            window(id).wait_for(id.peer);
        for (const SlotId& id : leaving_)
            window(id).send_tag(id);
        for (const SlotId& id : leaving_)
            window(id).wait_for(id.peer);
        leaving_.clear();
    }
    [[nodiscard]] bool has(const SlotId& id, std::uint64_t tag) {
        return detail::SlotAccess::has(window(id).arrived(id), tag);
    }
    [[nodiscard]] std::span<const std::byte> message(const SlotId& id) {
        return detail::SlotAccess::message(window(id).arrived(id));
    }
    void progress(SlotWait&) {
        if (topology_.hosts == 1) return;
        const MpiTurn turn;
        int any = 0;  // which lets MPI move what is on its way
        detail::mpi_check(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_.get(), &any, MPI_STATUS_IGNORE), "MPI_Iprobe");
        for (detail::MpiWindow* window : windows_.all())
            window->sync();
    }
    void pause(SlotWait& wait) {
        if (!wait.begun) {
            wait.deadline = detail::deadline_from_now(deadline_);
            wait.idled = 0;
        }
        wait.begun = true;
        detail::MpiPause pause{wait.idled, least_idle_};
        const bool rested = pause([] { return true; });
        wait.idled = pause.idled();
        if (!rested || wait.idle || Clock::now() < wait.deadline) return;
        std::string peers;
        for (const int peer : wait.peers)
            peers += (peers.empty() ? "" : ", ") + std::to_string(peer);
        throw DeadlinePassed{concat({"rank ", rank_, " waited ", deadline_.count(), " ms in ",
                                     describe_with_place(wait.label), ", for ranks ", peers})};
    }
    void wake() {}
    [[nodiscard]] bool any_thread() const { return topology_.hosts == 1 || MpiTurn::possible(); }

  private:
    using Clock = std::chrono::steady_clock;

    [[nodiscard]] static int least_idle(const Topology& topology) {
        using detail::MpiPause;
        if (topology.ranks_per_host > static_cast<int>(std::thread::hardware_concurrency())) return MpiPause::polls;
        return topology.hosts == 1 ? MpiPause::polls - 100 : 0;
    }
    [[nodiscard]] detail::MpiWindow& window(const SlotId& id) { return windows_[id.window]; }
    /// Waits until all ranks are here, and lets threads that answer others take their turns meanwhile.
    void meet() {
        MPI_Request request = MPI_REQUEST_NULL;
        {
            const MpiTurn turn;
            detail::mpi_check(MPI_Ibarrier(comm_.get(), &request), "MPI_Ibarrier");
        }
        for (int done = 0;;) {
            {
                const MpiTurn turn;
                detail::mpi_check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
            }
            if (done != 0) return;
            std::this_thread::yield();
        }
    }

    std::chrono::milliseconds deadline_;
    detail::MpiHandle comm_;
    int rank_;
    Topology topology_;
    int least_idle_;  // where a wait's pauses begin
    int uncaught_;
    detail::WindowList<detail::MpiWindow> windows_;
    std::vector<SlotId> leaving_;  // since the last flush
};

static_assert(OneSided<MpiSlots>);

}  // namespace shardwise::inline SHARDWISE_ABI
