// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/comm/one_sided.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// Slots over the messages of any communicator, for transports that have nothing better.

namespace shardwise::inline SHARDWISE_ABI {

/// One rank's slots over a two-sided communicator. Satisfies OneSided. A put is a message that says which slot it is
/// for; from every peer one is always expected, and is put where it belongs by whatever call of this rank comes next.
/// So slots move only while a rank is inside `progress`, `pause`, or a layer's call.
///
/// The communicator is for this alone: a `duplicate()` of a ThreadCommunicator, or an MpiCommunicator more.
/// Constructing is not collective; destroying is, and waits until all ranks do so. Of one thread. Cost: a message a
/// put, of its bytes and 24 more. Memory: the slots, one message more from each peer, and the slots of what leaves. A
/// wait polls: it yields the processor for about 0.1 ms, then sleeps 20 microseconds at a time.
class MessageSlots {
  public:
    /// \param comm      outlives this \param deadline  of a wait in which nothing comes
    explicit MessageSlots(CommunicatorRef comm, std::chrono::milliseconds deadline = std::chrono::minutes{5},
                          std::pmr::memory_resource& memory = *std::pmr::get_default_resource());
    MessageSlots(const MessageSlots&) = delete;
    MessageSlots& operator=(const MessageSlots&) = delete;
    ~MessageSlots();

    [[nodiscard]] int rank() const noexcept { return comm_.rank(); }
    [[nodiscard]] int size() const noexcept { return comm_.size(); }
    [[nodiscard]] Topology topology() const noexcept { return comm_.topology(); }

    [[nodiscard]] int open(const SlotLayout& layout);
    [[nodiscard]] std::span<std::byte> room(const SlotId& id);
    void put(const SlotId& id, std::uint64_t tag, std::int64_t bytes);
    void flush();
    [[nodiscard]] bool has(const SlotId& id, std::uint64_t tag) {
        const Arrived& slot = arrived(id);
        return slot.there && slot.tag == tag;
    }
    [[nodiscard]] std::span<const std::byte> message(const SlotId& id) {
        return arrived(id).message.span().subspan(sizeof(Header));
    }
    void progress(SlotWait& wait);
    void pause(SlotWait& wait);
    void wake() {}
    [[nodiscard]] bool any_thread() const noexcept { return false; }

  private:
    /// The head of every message.
    struct Header {
        std::int32_t window = 0;  // -1: the last one
        std::int32_t slot = 0;
        std::uint64_t tag = 0;
        std::int64_t bytes = 0;
    };
    struct Arrived {
        Buffer<std::byte> message;
        std::uint64_t tag = 0;
        bool there = false;
    };
    struct Leaving {
        Buffer<std::byte> message;
        std::size_t bytes = 0;
        Ticket ticket;
        bool posted = false;
    };
    struct Window {
        SlotLayout layout;
        std::vector<Arrived> arrived;  // (peer, slot)
        std::vector<Leaving> leaving;  // (peer, slot)
    };
    /// What is expected from a peer.
    struct Coming {
        Buffer<std::byte> message;
        Ticket ticket;
        bool posted = false;
        bool last = false;  // it has said that nothing more comes
    };
    [[nodiscard]] static std::size_t index(const Window& window, const SlotId& id) {
        return static_cast<std::size_t>(id.peer) * static_cast<std::size_t>(window.layout.slots) +
               static_cast<std::size_t>(id.slot);
    }
    [[nodiscard]] Arrived& arrived(const SlotId& id) {
        Window& window = windows_[static_cast<std::size_t>(id.window)];
        return window.arrived[index(window, id)];
    }
    [[nodiscard]] Leaving& leaving(const SlotId& id) {
        Window& window = windows_[static_cast<std::size_t>(id.window)];
        return window.leaving[index(window, id)];
    }
    void expect(int peer);
    bool take(int peer);
    bool take_all();
    void send(int peer, Leaving& message);
    void close();
    void withdraw() noexcept;

    CommunicatorRef comm_;
    std::chrono::milliseconds deadline_;
    std::pmr::memory_resource* memory_;
    int uncaught_;
    std::vector<Window> windows_;
    std::vector<Coming> coming_;  // (peer)
    std::vector<SlotId> put_;     // since the last flush
    int idle_ = 0;                // pauses in a row in which nothing came
};

static_assert(OneSided<MessageSlots>);

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/comm/message_slots.ipp"
#endif
