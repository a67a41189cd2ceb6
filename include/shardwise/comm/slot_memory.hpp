// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shardwise/comm/one_sided.hpp"
#include "shardwise/core/config.hpp"

/// \file
/// Slots in memory that sender and receiver both see.

namespace shardwise::inline SHARDWISE_ABI::detail {

/// Where the slots of a rank lie, from the first byte of its memory on: by source, then by slot. Each begins with a
/// line that has its tag and the bytes of its message.
class SlotPlaces {
  public:
    explicit SlotPlaces(const SlotLayout& layout) : slots_{layout.slots}, most_{layout.from} {
        std::int64_t first = 0;
        for (const std::int64_t most : most_) {
            first_.push_back(first);
            first += slots_ * SlotLayout::bytes_of(most);
        }
    }
    [[nodiscard]] std::int64_t first(int source, int slot) const noexcept {
        return first_[static_cast<std::size_t>(source)] + slot * SlotLayout::bytes_of(most(source));
    }
    [[nodiscard]] std::int64_t most(int source) const noexcept { return most_[static_cast<std::size_t>(source)]; }
    [[nodiscard]] int slots() const noexcept { return slots_; }

  private:
    int slots_;
    std::vector<std::int64_t> most_;   // (source)
    std::vector<std::int64_t> first_;  // (source)
};

/// What is done to a slot in shared memory. The tag is stored behind the message, and looked for before it.
struct SlotAccess {
    static constexpr std::uint64_t never = ~std::uint64_t{0};  ///< what no message is tagged with

    static void clear(std::byte* slot) noexcept { tag_of(slot).store(never, std::memory_order_relaxed); }
    static void put(std::byte* slot, std::uint64_t tag, std::int64_t bytes) noexcept {
        bytes_of(slot) = bytes;
        tag_of(slot).store(tag, std::memory_order_release);
    }
    [[nodiscard]] static bool has(std::byte* slot, std::uint64_t tag) noexcept {
        return tag_of(slot).load(std::memory_order_acquire) == tag;
    }
    [[nodiscard]] static std::span<const std::byte> message(std::byte* slot) noexcept {
        return {slot + SlotLayout::line, static_cast<std::size_t>(bytes_of(slot))};
    }

  private:
    [[nodiscard]] static std::atomic_ref<std::uint64_t> tag_of(std::byte* slot) noexcept {
        return std::atomic_ref{*reinterpret_cast<std::uint64_t*>(slot)};
    }
    [[nodiscard]] static std::int64_t& bytes_of(std::byte* slot) noexcept {
        return *reinterpret_cast<std::int64_t*>(slot + sizeof(std::uint64_t));
    }
};

/// The slots of one rank that is a thread.
class SlotMemory {
  public:
    explicit SlotMemory(const SlotLayout& layout)
        : layout_{layout}, places_{layout}, lines_(static_cast<std::size_t>(layout.bytes() / SlotLayout::line)) {
        for (int source = 0; source < static_cast<int>(layout.from.size()); ++source)
            for (int slot = 0; places_.most(source) != 0 && slot < layout.slots; ++slot)
                SlotAccess::clear(at(source, slot));
    }
    [[nodiscard]] const SlotLayout& layout() const noexcept { return layout_; }
    [[nodiscard]] std::int64_t bytes() const noexcept { return std::ssize(lines_) * SlotLayout::line; }
    [[nodiscard]] std::span<std::byte> room(int source, int slot) {
        return {at(source, slot) + SlotLayout::line, static_cast<std::size_t>(places_.most(source))};
    }
    void put(int source, int slot, std::uint64_t tag, std::int64_t bytes) {
        SHARDWISE_ASSERT(tag != SlotAccess::never && bytes <= places_.most(source));
        SlotAccess::put(at(source, slot), tag, bytes);
    }
    [[nodiscard]] bool has(int source, int slot, std::uint64_t tag) { return SlotAccess::has(at(source, slot), tag); }
    [[nodiscard]] std::span<const std::byte> message(int source, int slot) {
        return SlotAccess::message(at(source, slot));
    }

  private:
    struct alignas(SlotLayout::line) Line {
        std::byte bytes[SlotLayout::line];
    };
    [[nodiscard]] std::byte* at(int source, int slot) {
        SHARDWISE_ASSERT(slot >= 0 && slot < places_.slots() && places_.most(source) != 0);
        return lines_[static_cast<std::size_t>(places_.first(source, slot) / SlotLayout::line)].bytes;
    }

    SlotLayout layout_;
    SlotPlaces places_;
    std::vector<Line> lines_;
};

}  // namespace shardwise::inline SHARDWISE_ABI::detail
