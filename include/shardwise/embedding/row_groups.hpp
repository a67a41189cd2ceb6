// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
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
#include "shardwise/topology/topology.hpp"

/// \file
/// Gradients by row: grouping contributions by row, and folding each group in the one order that the library fixes.

namespace shardwise::inline SHARDWISE_ABI {

/// The order in which contributions to a row are summed: samples inside a rank, ranks inside a host, hosts; each sum
/// starts at +0.0. A sum that starts so is never -0.0, hence partial sums compose and absent ranks are free.
struct Tree {
    static constexpr const char* name = "tree";
};
/// All contributions in one sum, in the order of samples over all ranks: the same bits at every world size.
struct Sample {
    static constexpr const char* name = "sample";
};

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

namespace detail {

inline void start_sum(float* __restrict sum, const Contribution& c, int dim) {
    for (int d = 0; d < dim; ++d)
        sum[d] = std::fma(c.weight, c.gradient[d], 0.0F);
}
inline void add_to_sum(float* __restrict sum, const Contribution& c, int dim) {
    for (int d = 0; d < dim; ++d)
        sum[d] = std::fma(c.weight, c.gradient[d], sum[d]);
}
inline void add(float* __restrict sum, const float* __restrict term, int dim) {
    for (int d = 0; d < dim; ++d)
        sum[d] += term[d];
}

}  // namespace detail

/// Scratch for `fold`: two rows of the widest shard.
using FoldScratch = Buffer<float>;

/// Makes room for folds of any row of the store.
inline void prepare(FoldScratch& scratch, const Lanes& lanes) {
    int widest = 0;
    for (const ShardStore& shard : lanes.store->shards())
        widest = std::max(widest, shard.dim);
    scratch.on(*lanes.memory).resize(2 * static_cast<std::size_t>(widest));
}

/// The gradient of the i-th row of `set`, summed in the order `Order`, into sum[0..dim).
/// Costs one pass over its contributions; host and total exist only once the row has a second source or host.
template <class Order>
void fold(const RowSet& set, std::int64_t i, const Topology& topology, FoldScratch& scratch, float* sum) {
    const int dim = set.dim;
    const Contribution* c = set.contributions + set.first[i];
    const Contribution* const end = set.contributions + set.first[i + 1];
    detail::start_sum(sum, *c, dim);
    if constexpr (std::is_same_v<Order, Sample>) {
        for (++c; c != end; ++c)
            detail::add_to_sum(sum, *c, dim);
        return;
    } else {
        const Contribution* next = c + 1;
        for (; next != end && next->source == c->source; ++next)
            detail::add_to_sum(sum, *next, dim);
        if (next == end) return;
        // `sum` holds the first rank; from here on it holds the total of the hosts done, or the host in progress
        scratch.resize(2 * static_cast<std::size_t>(dim));
        float* rank = scratch.data();
        float* host = scratch.data() + dim;
        float* into = sum;  // the host in progress
        int current_host = topology.host_of(c->source);
        while (next != end) {
            const int source = next->source;
            detail::start_sum(rank, *next, dim);
            for (++next; next != end && next->source == source; ++next)
                detail::add_to_sum(rank, *next, dim);
            if (topology.host_of(source) == current_host) {
                detail::add(into, rank, dim);
            } else {
                if (into == host) detail::add(sum, host, dim);
                into = host;
                std::copy_n(rank, dim, host);
                current_host = topology.host_of(source);
            }
        }
        if (into == host) detail::add(sum, host, dim);
    }
}

}  // namespace shardwise::inline SHARDWISE_ABI
