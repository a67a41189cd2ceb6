// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/sharding/policy.hpp"

/// \file
/// The distinct ids of a list, numbered as they come.

namespace shardwise::inline SHARDWISE_ABI {

/// Numbers the distinct ids of lists that look up in one table: 0, 1, 2, ... in the order in which they first stand
/// there. A slot a row where these are no more than slots by hash would be, and no more than half full otherwise.
/// Memory: 4 bytes a slot. Cost: one pass over the slots and one over the ids.
class DistinctIds {
  public:
    DistinctIds& on(std::pmr::memory_resource& memory) {
        slots_.on(memory);
        return *this;
    }
    /// Slots for `ids` ids of a table of `rows` rows.
    [[nodiscard]] static std::int64_t slots(std::int64_t ids, std::int64_t rows) {
        return ids == 0 ? 0 : std::min(hashed_slots(ids), rows);
    }
    /// Begins with a table: `ids` ids of `rows` rows, of which all are valid.
    void begin(std::int64_t ids, std::int64_t rows) {
        hashed_ = hashed_slots(ids) < rows;
        shift_ = 64 - static_cast<unsigned>(std::countr_zero(static_cast<std::uint64_t>(hashed_slots(ids))));
        slots_.assign_zero(static_cast<std::size_t>(slots(ids, rows)));
        count_ = 0;
    }
    /// How many distinct ids there have been.
    [[nodiscard]] std::int64_t count() const noexcept { return count_; }

    /// Writes the number of each id to `numbers`, and new ones to `distinct`, each behind the last.
    /// \param distinct  the same for all lists of a table \tparam To  std::int64_t where a row's number may need it
    template <class Id, class To>
    void number(std::span<const Id> ids, To* distinct, LocalRow* numbers) {
        if (hashed_) {
            constexpr std::size_t ahead = 24;  // slots that a core can wait for
            for (std::size_t i = 0; i < ids.size(); ++i) {
                if (i + ahead < ids.size()) __builtin_prefetch(slots_.data() + slot_of(ids[i + ahead]));
                *numbers++ = find(static_cast<To>(ids[i]), distinct);
            }
            return;
        }
        std::uint32_t* const slots = slots_.data();
        std::int64_t count = count_;
        for (const Id id : ids) {
            std::uint32_t& slot = slots[static_cast<std::size_t>(id)];
            if (slot == 0) {
                distinct[count++] = static_cast<To>(id);
                slot = static_cast<std::uint32_t>(count);
            }
            *numbers++ = slot - 1;
        }
        count_ = count;
    }

  private:
    [[nodiscard]] static std::int64_t hashed_slots(std::int64_t ids) {
        return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(2 * ids, 2))));
    }
    template <class Id>
    [[nodiscard]] std::uint64_t slot_of(Id id) const {
        return (static_cast<std::uint64_t>(id) * 0x9e3779b97f4a7c15U) >> shift_;
    }
    template <class To>
    LocalRow find(To id, To* distinct) {
        std::uint32_t* const slots = slots_.data();
        const std::uint64_t last = slots_.size() - 1;
        std::uint64_t at = slot_of(id);
        for (;; at = (at + 1) & last) {
            const std::uint32_t slot = slots[at];
            if (slot == 0) break;
            if (distinct[slot - 1] == id) return slot - 1;
        }
        distinct[count_++] = id;
        slots[at] = static_cast<std::uint32_t>(count_);
        return slots[at] - 1;
    }

    Buffer<std::uint32_t> slots_;  // number + 1; 0: free
    std::int64_t count_ = 0;
    unsigned shift_ = 0;
    bool hashed_ = false;
};

}  // namespace shardwise::inline SHARDWISE_ABI
