// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <stdexcept>

#include "shardwise/comm/one_sided.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// Slots of any transport behind one type, as CommunicatorRef is for rounds.

namespace shardwise::inline SHARDWISE_ABI {

/// Refers to slots of any type; costs one indirect call each. Does not own them.
class OneSidedRef {
  public:
    template <OneSided S>
        requires(!std::same_as<S, OneSidedRef>)
    OneSidedRef(S& slots) : object_{&slots}, calls_{&calls_of<S>}, rank_{slots.rank()}, topology_{slots.topology()} {}

    [[nodiscard]] int rank() const noexcept { return rank_; }
    [[nodiscard]] int size() const noexcept { return topology_.ranks(); }
    [[nodiscard]] Topology topology() const noexcept { return topology_; }
    /// \throws BadInput where there is not so much memory
    [[nodiscard]] int open(const SlotLayout& layout) {
        const auto none = [&] {
            return BadInput{concat({"slots of ", layout.bytes(), " bytes on rank ", rank(),
                                    ", and there is not so much memory: give a smaller lag, or smaller messages"})};
        };
        try {
            return calls_->open(object_, layout);
        } catch (const std::bad_alloc&) {
            throw none();
        } catch (const std::length_error&) {
            throw none();
        }
    }
    [[nodiscard]] std::span<std::byte> room(const SlotId& id) { return calls_->room(object_, id); }
    void put(const SlotId& id, std::uint64_t tag, std::int64_t bytes) { calls_->put(object_, id, tag, bytes); }
    void flush() { calls_->flush(object_); }
    [[nodiscard]] bool has(const SlotId& id, std::uint64_t tag) { return calls_->has(object_, id, tag); }
    [[nodiscard]] std::span<const std::byte> message(const SlotId& id) { return calls_->message(object_, id); }
    void progress(SlotWait& wait) { calls_->progress(object_, wait); }
    void pause(SlotWait& wait) { calls_->pause(object_, wait); }
    void wake() { calls_->wake(object_); }
    [[nodiscard]] bool any_thread() { return calls_->any_thread(object_); }

  private:
    struct Calls {
        int (*open)(void*, const SlotLayout&);
        std::span<std::byte> (*room)(void*, const SlotId&);
        void (*put)(void*, const SlotId&, std::uint64_t, std::int64_t);
        void (*flush)(void*);
        bool (*has)(void*, const SlotId&, std::uint64_t);
        std::span<const std::byte> (*message)(void*, const SlotId&);
        void (*progress)(void*, SlotWait&);
        void (*pause)(void*, SlotWait&);
        void (*wake)(void*);
        bool (*any_thread)(void*);
    };
    template <class S>
    static constexpr Calls calls_of{
        .open = [](void* s, const SlotLayout& layout) { return static_cast<S*>(s)->open(layout); },
        .room = [](void* s, const SlotId& id) { return static_cast<S*>(s)->room(id); },
        .put = [](void* s, const SlotId& id, std::uint64_t tag,
                  std::int64_t bytes) { static_cast<S*>(s)->put(id, tag, bytes); },
        .flush = [](void* s) { static_cast<S*>(s)->flush(); },
        .has = [](void* s, const SlotId& id, std::uint64_t tag) { return static_cast<S*>(s)->has(id, tag); },
        .message = [](void* s, const SlotId& id) { return static_cast<S*>(s)->message(id); },
        .progress = [](void* s, SlotWait& wait) { static_cast<S*>(s)->progress(wait); },
        .pause = [](void* s, SlotWait& wait) { static_cast<S*>(s)->pause(wait); },
        .wake = [](void* s) { static_cast<S*>(s)->wake(); },
        .any_thread = [](void* s) { return static_cast<S*>(s)->any_thread(); },
    };

    void* object_;
    const Calls* calls_;
    int rank_;
    Topology topology_;
};

static_assert(OneSided<OneSidedRef>);

}  // namespace shardwise::inline SHARDWISE_ABI
