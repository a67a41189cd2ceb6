// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/embedding/lanes.hpp"
#include "shardwise/plan/memory.hpp"

/// \file
/// Gradients by row: grouping contributions by row.

namespace shardwise::inline SHARDWISE_ABI {

/// The memory of one RowSet: contributions sorted by row.
struct RowGroups {
    Buffer<std::uint64_t> keys;  // row << 32 | position, sorted by row, stable
    Buffer<std::uint64_t> spare;
    Buffer<Contribution> unsorted;  // by position
    Buffer<Contribution> contributions;
    Buffer<LocalRow> rows;
    Buffer<std::int64_t> first;

    RowGroups& on(std::pmr::memory_resource& memory) {
        keys.on(memory);
        spare.on(memory);
        unsorted.on(memory);
        contributions.on(memory);
        rows.on(memory);
        first.on(memory);
        return *this;
    }
    /// Makes room for `count` contributions; `put` each, then group. \throws BadInput for more than
    /// a 32-bit position can count
    void resize(std::int64_t count) {
        if (count > std::numeric_limits<std::uint32_t>::max())
            throw BadInput{"the batch has " + std::to_string(count) +
                           " ids of one shard, and at most 4294967295 fit: give smaller batches"};
        keys.resize(static_cast<std::size_t>(count));
        spare.resize(static_cast<std::size_t>(count));
        unsorted.resize(static_cast<std::size_t>(count));
    }
    /// What the buffers need for `count` contributions.
    static void tally(std::int64_t count, MemoryTally& tally) {
        for (int i = 0; i < 2; ++i)
            tally.need(count * static_cast<std::int64_t>(sizeof(std::uint64_t)));
        for (int i = 0; i < 2; ++i)
            tally.need(count * static_cast<std::int64_t>(sizeof(Contribution)));
        tally.need(count * static_cast<std::int64_t>(sizeof(LocalRow)));
        tally.need((count + 1) * static_cast<std::int64_t>(sizeof(std::int64_t)));
    }
    void put(std::int64_t position, LocalRow row, const Contribution& contribution) {
        keys[static_cast<std::size_t>(position)] =
            static_cast<std::uint64_t>(row) << 32U | static_cast<std::uint64_t>(position);
        unsorted[static_cast<std::size_t>(position)] = contribution;
    }

    /// Sorts by row (stable, radix, as many passes as `rows_in_shard` asks for) and finds the distinct rows.
    [[nodiscard]] RowSet group(int slot, int dim, std::int64_t rows_in_shard) {
        sort(rows_in_shard);
        const std::size_t count = keys.size();
        contributions.resize(count);
        rows.resize(count);
        first.resize(count + 1);
        std::size_t distinct = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const auto row = static_cast<LocalRow>(keys[i] >> 32U);
            if (distinct == 0 || rows[distinct - 1] != row) {
                rows[distinct] = row;
                first[distinct++] = static_cast<std::int64_t>(i);
            }
            contributions[i] = unsorted[static_cast<std::size_t>(keys[i] & 0xffffffffU)];
        }
        first[distinct] = static_cast<std::int64_t>(count);
        return {.slot = slot,
                .dim = dim,
                .count = static_cast<std::int64_t>(distinct),
                .rows = rows.data(),
                .first = first.data(),
                .contributions = contributions.data()};
    }

  private:
    void sort(std::int64_t rows_in_shard) {
        constexpr unsigned digit = 11;
        std::array<std::size_t, std::size_t{1} << digit> offset{};
        for (unsigned shift = 0; shift < 32 && (static_cast<std::uint64_t>(rows_in_shard) >> shift) > 0;
             shift += digit) {
            offset.fill(0);
            const auto bucket = [shift](std::uint64_t key) {
                return static_cast<std::size_t>(key >> (32U + shift)) & ((std::size_t{1} << digit) - 1);
            };
            for (const std::uint64_t key : keys.span())
                ++offset[bucket(key)];
            std::size_t sum = 0;
            for (std::size_t& o : offset)
                sum += std::exchange(o, sum);
            for (const std::uint64_t key : keys.span())
                spare[offset[bucket(key)]++] = key;
            keys.swap(spare);
        }
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI
