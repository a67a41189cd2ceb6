// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "shardwise/comm/mpi_environment.hpp"
#include "shardwise/comm/one_sided.hpp"
#include "shardwise/comm/slot_memory.hpp"
#include "shardwise/core/at.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// One window of slots in an MPI job: its memory on this rank, and how other ranks' is reached.

namespace shardwise::inline SHARDWISE_ABI::detail {

/// \throws Error where Open MPI may choose osc/ucx for windows, which gets stuck
inline void refuse_ucx_windows() {
#if defined(OMPI_MAJOR_VERSION)
    int level = 0;
    int asked = MPI_THREAD_SINGLE;  // as MPI itself: Open MPI takes this for what MPI has from here on
    mpi_check(MPI_Query_thread(&asked), "MPI_Query_thread");
    if (MPI_T_init_thread(asked, &level) != MPI_SUCCESS) return;
    std::string chosen;
    int index = 0;
    int count = 0;
    MPI_T_cvar_handle handle = nullptr;
    const bool known = MPI_T_cvar_get_index("osc", &index) == MPI_SUCCESS &&
                       MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) == MPI_SUCCESS;
    if (known) {
        chosen.assign(static_cast<std::size_t>(count) + 1, '\0');
        MPI_T_cvar_read(handle, chosen.data());
        MPI_T_cvar_handle_free(&handle);
    }
    MPI_T_finalize();
    chosen.resize(std::min(chosen.find('\0'), chosen.size()));
    const bool names_ucx = chosen.find("ucx") != std::string::npos;
    const bool may_be_ucx = chosen.empty() || (chosen.front() == '^') != names_ucx;
    if (known && may_be_ucx)
        throw Error{
            "slots across hosts: Open MPI's windows over osc/ucx get stuck; exclude it, with `mpirun --mca osc ^ucx` "
            "or "
            "OMPI_MCA_osc=^ucx in the environment",
            3};
#endif
}

/// Slots for what comes from ranks of one's host lie in memory that they share, those for what comes from other hosts
/// in a window of MPI. Each begins with a line that has its tag, and the bytes of its message.
class MpiWindow {
  public:
    /// Collective. \throws Mismatch where ranks disagree
    MpiWindow(MPI_Comm comm, const Topology& topology, int rank, const SlotLayout& layout)
        : topology_{topology}, rank_{rank}, layout_{layout}, near_{part(layout, true)}, far_{part(layout, false)} {
        exchange_layouts(comm);
        open_near(comm);
        if (topology_.hosts > 1) open_far(comm);
        for (int source = 0; source < topology_.ranks(); ++source)
            for (int slot = 0; slot < layout_.slots && at(layout_.from, source) != 0; ++slot)
                SlotAccess::clear(arrived({.window = 0, .peer = source, .slot = slot}));
        mpi_check(MPI_Barrier(comm), "MPI_Barrier");
    }
    MpiWindow(const MpiWindow&) = delete;
    MpiWindow& operator=(const MpiWindow&) = delete;
    ~MpiWindow() {
        if (shared_ != MPI_WIN_NULL) MPI_Win_free(&shared_);
        if (across_ == MPI_WIN_NULL) return;
        MPI_Win_unlock_all(across_);
        MPI_Win_free(&across_);
    }
    /// Never frees anything.
    void release() noexcept { shared_ = across_ = MPI_WIN_NULL; }

    [[nodiscard]] std::int64_t bytes() const noexcept { return layout_.bytes(); }
    /// The slot in which something comes.
    [[nodiscard]] std::byte* arrived(const SlotId& id) {
        return is_near(id.peer) ? near_base_ + near_.first(id.peer, id.slot) : far_base_ + far_.first(id.peer, id.slot);
    }
    [[nodiscard]] std::span<std::byte> room(const SlotId& id) {
        const auto most = static_cast<std::size_t>(at(layout_.to, id.peer));
        return {(is_near(id.peer) ? theirs(id) : packed(id)) + SlotLayout::line, most};
    }
    /// \returns whether it has to be sent
    bool put(const SlotId& id, std::uint64_t tag, std::int64_t bytes) {
        SHARDWISE_ASSERT(tag != SlotAccess::never && bytes <= at(layout_.to, id.peer));
        SlotAccess::put(is_near(id.peer) ? theirs(id) : packed(id), tag, bytes);
        return !is_near(id.peer);
    }
    /// All of a packed slot but its tag.
    void send(const SlotId& id) {
        std::byte* const slot = packed(id);
        const auto bytes = SlotLayout::line + std::ssize(SlotAccess::message(slot)) - tag_bytes;
        mpi_check(MPI_Put(slot + tag_bytes, static_cast<int>(bytes), MPI_BYTE, id.peer, place_at(id) + tag_bytes,
                          static_cast<int>(bytes), MPI_BYTE, across_),
                  "MPI_Put");
    }
    void send_tag(const SlotId& id) {
        mpi_check(
            MPI_Accumulate(packed(id), 1, MPI_UINT64_T, id.peer, place_at(id), 1, MPI_UINT64_T, MPI_REPLACE, across_),
            "MPI_Accumulate");
    }
    /// Until all that was sent to a rank is there.
    void wait_for(int peer) { mpi_check(MPI_Win_flush(peer, across_), "MPI_Win_flush"); }
    /// Shows what has come from other hosts.
    void sync() { mpi_check(MPI_Win_sync(across_), "MPI_Win_sync"); }

  private:
    static constexpr std::int64_t tag_bytes = sizeof(std::uint64_t);

    [[nodiscard]] bool is_near(int peer) const noexcept { return topology_.host_of(peer) == topology_.host_of(rank_); }
    [[nodiscard]] SlotLayout part(const SlotLayout& all, bool near) const {
        SlotLayout some = all;
        for (int peer = 0; peer < topology_.ranks(); ++peer)
            if (is_near(peer) != near) at(some.from, peer) = at(some.to, peer) = 0;
        return some;
    }
    [[nodiscard]] std::byte* theirs(const SlotId& id) {
        return at(bases_, id.peer % topology_.ranks_per_host) + at(places_, id.peer) +
               id.slot * SlotLayout::bytes_of(at(layout_.to, id.peer));
    }
    [[nodiscard]] std::byte* packed(const SlotId& id) {
        return leaving_.data() + at(leaving_places_, id.peer) + id.slot * SlotLayout::bytes_of(at(layout_.to, id.peer));
    }
    [[nodiscard]] MPI_Aint place_at(const SlotId& id) const {
        return at(places_, id.peer) + id.slot * SlotLayout::bytes_of(at(layout_.to, id.peer));
    }

    /// Everybody's layout, and where the slots of this rank begin in each other's memory.
    void exchange_layouts(MPI_Comm comm) {
        const auto ranks = static_cast<std::size_t>(topology_.ranks());
        std::vector<std::int64_t> mine{layout_.slots};
        mine.insert(mine.end(), layout_.from.begin(), layout_.from.end());
        mine.insert(mine.end(), layout_.to.begin(), layout_.to.end());
        for (int source = 0; source < topology_.ranks(); ++source)
            mine.push_back((is_near(source) ? near_ : far_).first(source, 0));
        std::vector<std::int64_t> all(mine.size() * ranks);
        const int count = static_cast<int>(mine.size());
        mpi_check(MPI_Allgather(mine.data(), count, MPI_INT64_T, all.data(), count, MPI_INT64_T, comm),
                  "MPI_Allgather");
        std::int64_t leaving = 0;
        for (std::size_t peer = 0; peer < ranks; ++peer) {
            const std::int64_t* const theirs = all.data() + peer * mine.size();
            check_agreement(layout_, rank_,
                            {.slots = static_cast<int>(theirs[0]),
                             .from = {theirs + 1, theirs + 1 + ranks},
                             .to = {theirs + 1 + ranks, theirs + 1 + 2 * ranks}},
                            static_cast<int>(peer));
            for (std::size_t to = 0; to < ranks; ++to) {  // of all, so that all throw
                const std::int64_t most = theirs[1 + ranks + to];
                const bool far = topology_.host_of(static_cast<int>(peer)) != topology_.host_of(static_cast<int>(to));
                if (far && most > std::numeric_limits<int>::max() - SlotLayout::line)
                    throw BadInput{
                        concat({"slots of ", most, " bytes from rank ", peer, " to rank ", to,
                                " across hosts: give at most ", std::numeric_limits<int>::max() - SlotLayout::line})};
            }
            places_.push_back(theirs[1 + 2 * ranks + static_cast<std::size_t>(rank_)]);
            leaving_places_.push_back(leaving);
            if (!is_near(static_cast<int>(peer))) leaving += layout_.slots * SlotLayout::bytes_of(layout_.to[peer]);
        }
        leaving_.resize(static_cast<std::size_t>(leaving));
    }
    /// \throws BadInput where MPI has no room for slots
    void check_room(int code, const char* call) const {
        try {
            mpi_check(code, call);
        } catch (const Error& error) {
            throw BadInput{
                concat({"slots of ", layout_.bytes(), " bytes on rank ", rank_, ", and there is no room for them (",
                        error.what(), "): give a smaller lag, or smaller messages"})};
        }
    }
    void open_near(MPI_Comm comm) {
        MPI_Comm host = MPI_COMM_NULL;
        mpi_check(MPI_Comm_split(comm, topology_.host_of(rank_), rank_, &host), "MPI_Comm_split");
        MPI_Info apart = MPI_INFO_NULL;
        mpi_check(MPI_Info_create(&apart), "MPI_Info_create");
        mpi_check(MPI_Info_set(apart, "alloc_shared_noncontig", "true"), "MPI_Info_set");
        check_room(MPI_Win_allocate_shared(part(layout_, true).bytes(), 1, apart, host, &near_base_, &shared_),
                   "MPI_Win_allocate_shared");
        mpi_check(MPI_Info_free(&apart), "MPI_Info_free");
        for (int peer = 0; peer < topology_.ranks_per_host; ++peer) {
            MPI_Aint size = 0;
            int unit = 0;
            std::byte*& base = bases_.emplace_back(nullptr);
            mpi_check(MPI_Win_shared_query(shared_, peer, &size, &unit, &base), "MPI_Win_shared_query");
        }
        mpi_check(MPI_Comm_free(&host), "MPI_Comm_free");
    }
    void open_far(MPI_Comm comm) {
        check_room(MPI_Win_allocate(part(layout_, false).bytes(), 1, MPI_INFO_NULL, comm, &far_base_, &across_),
                   "MPI_Win_allocate");
        int* model = nullptr;
        int found = 0;
        mpi_check(MPI_Win_get_attr(across_, MPI_WIN_MODEL, &model, &found), "MPI_Win_get_attr");
        if (found == 0 || *model != MPI_WIN_UNIFIED)
            throw Error{
                "slots across hosts: a window of this MPI has separate memory for what comes, and slots are "
                "read where it came",
                3};
        mpi_check(MPI_Win_lock_all(MPI_MODE_NOCHECK, across_), "MPI_Win_lock_all");
    }

    Topology topology_;
    int rank_;
    SlotLayout layout_;
    SlotPlaces near_;
    SlotPlaces far_;
    std::byte* near_base_ = nullptr;
    std::byte* far_base_ = nullptr;
    MPI_Win shared_ = MPI_WIN_NULL;
    MPI_Win across_ = MPI_WIN_NULL;
    std::vector<std::byte*> bases_;             // (rank of the host)
    std::vector<std::int64_t> places_;          // (rank): of my slots in its memory
    std::vector<std::int64_t> leaving_places_;  // (rank)
    Buffer<std::byte> leaving_;                 // packed for other hosts
};

}  // namespace shardwise::inline SHARDWISE_ABI::detail
