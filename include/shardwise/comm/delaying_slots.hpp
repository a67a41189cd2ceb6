// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <thread>
#include <utility>

#include "shardwise/comm/one_sided.hpp"
#include "shardwise/core/config.hpp"

/// \file
/// A decorator that makes a rank slow, for tests and measurements.

namespace shardwise::inline SHARDWISE_ABI {

/// Forwards everything to `S`; what is put leaves after a delay. Of one thread.
template <OneSided S>
class DelayingSlots {
  public:
    /// \param delay  asked before every flush
    DelayingSlots(S& below, std::function<std::chrono::nanoseconds()> delay)
        : below_{&below}, delay_{std::move(delay)} {}

    [[nodiscard]] int rank() const noexcept { return below_->rank(); }
    [[nodiscard]] int size() const noexcept { return below_->size(); }
    [[nodiscard]] Topology topology() const noexcept { return below_->topology(); }
    [[nodiscard]] int open(const SlotLayout& layout) { return below_->open(layout); }
    [[nodiscard]] std::span<std::byte> room(const SlotId& id) { return below_->room(id); }
    void put(const SlotId& id, std::uint64_t tag, std::int64_t bytes) {
        wait();
        below_->put(id, tag, bytes);
    }
    void flush() {
        below_->flush();
        delayed_ = false;
    }
    [[nodiscard]] bool has(const SlotId& id, std::uint64_t tag) { return below_->has(id, tag); }
    [[nodiscard]] std::span<const std::byte> message(const SlotId& id) { return below_->message(id); }
    void progress(SlotWait& wait) { below_->progress(wait); }
    void pause(SlotWait& wait) { below_->pause(wait); }
    void wake() { below_->wake(); }
    [[nodiscard]] bool any_thread() { return false; }

  private:
    /// Once for all puts of a flush. Sleeping threads oversleep: the last half millisecond is spent yielding.
    void wait() {
        if (std::exchange(delayed_, true)) return;
        const auto until = std::chrono::steady_clock::now() + delay_();
        std::this_thread::sleep_until(until - std::chrono::microseconds{500});
        while (std::chrono::steady_clock::now() < until)
            std::this_thread::yield();
    }

    S* below_;
    std::function<std::chrono::nanoseconds()> delay_;
    bool delayed_ = false;
};

}  // namespace shardwise::inline SHARDWISE_ABI
