// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "shardwise/comm/one_sided.hpp"
#include "shardwise/comm/traffic.hpp"
#include "shardwise/core/config.hpp"

/// \file
/// A decorator that counts what is put.

namespace shardwise::inline SHARDWISE_ABI {

/// Forwards everything to `S` and counts puts and their bytes by destination, all of them as payload.
template <OneSided S>
class CountingSlots {
  public:
    explicit CountingSlots(S& below) : below_{&below}, sent_{below.topology()} {}

    [[nodiscard]] int rank() const noexcept { return below_->rank(); }
    [[nodiscard]] int size() const noexcept { return below_->size(); }
    [[nodiscard]] Topology topology() const noexcept { return below_->topology(); }
    [[nodiscard]] int open(const SlotLayout& layout) { return below_->open(layout); }
    [[nodiscard]] std::span<std::byte> room(const SlotId& id) { return below_->room(id); }
    void put(const SlotId& id, std::uint64_t tag, std::int64_t bytes) {
        {
            const std::lock_guard lock{mutex_};
            sent_.at(rank(), id.peer) += TierTraffic{.payload = bytes, .control = 0, .messages = 1};
        }
        below_->put(id, tag, bytes);
    }
    void flush() { below_->flush(); }
    [[nodiscard]] bool has(const SlotId& id, std::uint64_t tag) { return below_->has(id, tag); }
    [[nodiscard]] std::span<const std::byte> message(const SlotId& id) { return below_->message(id); }
    void progress(SlotWait& wait) { below_->progress(wait); }
    void pause(SlotWait& wait) { below_->pause(wait); }
    void wake() { below_->wake(); }
    [[nodiscard]] bool any_thread() { return below_->any_thread(); }

    /// What this rank has put so far; only its own row is filled.
    [[nodiscard]] TrafficMatrix sent() const {
        const std::lock_guard lock{mutex_};
        return sent_;
    }

  private:
    S* below_;
    mutable std::mutex mutex_;
    TrafficMatrix sent_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
