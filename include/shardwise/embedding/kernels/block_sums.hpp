// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "shardwise/core/config.hpp"
#include "shardwise/core/prefetch.hpp"
#include "shardwise/embedding/kernels/pack_gradients.hpp"
#include "shardwise/embedding/kernels/row_set.hpp"
#include "shardwise/embedding/kernels/row_sum.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// The sums of rows that very many contributions go to, block by block of gradients.

namespace shardwise::inline SHARDWISE_ABI {

/// Sums the busy rows of a set, those of very many keys: while a block of gradients is in the nearest caches, it is
/// added to all of them. Row by row each key would read its gradient from farther away. Each sum has its own order all
/// the same, and so its bits. The sums lie in the set's room, behind the copies.
class BlockSums {
  public:
    /// A block of gradients: so small that it stays in any second cache, with sums beside it. The larger it is, the
    /// more rows are busy, and the fewer times sums are read and written.
    static constexpr std::int64_t block_bytes = 64 << 10;
    /// A row is busy from so many keys a block on, and as many a source: with fewer, sums are read and written too
    /// often.
    static constexpr std::int64_t keys_a_block = 4;

    /// Chooses the busy rows of a set, the first of them if there are more than it has room for. The next calls are
    /// add(), up to its last gradient, then find(); no gradient of another source or host may stand between those of
    /// one.
    /// \param tree  sums of a rank and of a host are their own, else all is one sum
    void choose(const RowSet& set, const Topology& topology, bool tree) {
        count_ = 0;
        const std::int64_t gradients = set.contributions.count;
        const std::int64_t most = most_block_sums(gradients, set.dim);
        if (most == 0 || !worth_copies(set) || gradients < 2 * block(set.dim)) return;
        topology_ = topology;
        tree_ = tree;
        next_ = 0;
        dim_ = set.dim;
        least_ = keys_a_block * ((gradients + block(dim_) - 1) / block(dim_) + sources_of(set));
        for (std::int64_t i = 0; i < set.several && count_ < static_cast<std::size_t>(most); ++i)
            if (set.first[i + 1] - set.first[i] >= least_)
                rows_[count_++] = {.first = set.first[i], .next = set.first[i], .end = set.first[i + 1]};
        totals_ = set.room + gradients * dim_;
        std::fill_n(totals_, 3 * floats(), 0.0F);
    }
    void forget() noexcept { count_ = 0; }
    [[nodiscard]] std::size_t size() const noexcept { return count_; }
    /// How many gradients of a width are a block.
    [[nodiscard]] static constexpr std::int64_t block(int dim) noexcept {
        return std::max<std::int64_t>(block_bytes / static_cast<std::int64_t>(sizeof(float)) / dim, 1);
    }
    /// Adds the gradients up to number `end`, each once in all. \param set  that was chosen from, its gradients even
    void add(const RowSet& set, std::int64_t end) {
        if (count_ == 0) return;
        while (next_ < end) {
            const std::int32_t source = source_of(set, next_);
            while (++next_ < end && source_of(set, next_) == source) {
            }
            add_until(set, static_cast<std::uint64_t>(next_));
            const bool last = next_ == set.contributions.count;
            const std::int32_t then = last ? -1 : source_of(set, next_);
            if (then != source) end_source(last || topology_.host_of(then) != topology_.host_of(source));
        }
    }
    /// The sum of a row, all gradients having been added, or null where it has none here.
    /// \param terms  of the set that was chosen from
    [[nodiscard]] const float* find(const RowTerms& terms) const {
        if (count_ == 0 || terms.end - terms.first < least_) return nullptr;
        const auto* const end = rows_.data() + count_;
        const auto* const row = std::lower_bound(rows_.data(), end, terms.first,
                                                 [](const Row& of, std::int64_t first) { return of.first < first; });
        return row == end || row->first != terms.first ? nullptr : totals_ + (row - rows_.data()) * dim_;
    }

  private:
    /// Keys of the set; those before `next` have been added.
    struct Row {
        std::uint32_t first;
        std::uint32_t next;
        std::uint32_t end;
    };

    [[nodiscard]] std::size_t floats() const { return count_ * static_cast<std::size_t>(dim_); }
    [[nodiscard]] float* hosts() const { return totals_ + floats(); }
    [[nodiscard]] float* sources() const { return hosts() + floats(); }
    [[nodiscard]] std::int32_t source_of(const RowSet& set, std::int64_t number) const {
        return tree_ && !set.contributions.one_source() ? set.contributions.list[number].source : 0;
    }
    /// How often the source of the next gradient is another.
    [[nodiscard]] std::int64_t sources_of(const RowSet& set) const {
        std::int64_t changes = 0;
        for (std::int64_t i = 1; i < set.contributions.count; ++i)
            changes += source_of(set, i) != source_of(set, i - 1) ? 1 : 0;
        return changes;
    }
    void add_until(const RowSet& set, std::uint64_t until) {
        switch (dim_) {
            case 64:
                return add_as<64>(set, until);
            case 128:
                return add_as<128>(set, until);
            default:
                return add_as<0>(set, until);
        }
    }
    /// \tparam Dim  the number of columns; 0: dim_
    template <int Dim>
    void add_as(const RowSet& set, std::uint64_t until) {
        const Contributions from = set.contributions;
        const std::uint64_t* const keys = set.keys;
        const int dim = Dim > 0 ? Dim : dim_;
        float* to = sources();
        for (std::size_t i = 0; i < count_; ++i, to += dim) {
            Row& row = rows_[i];
            const std::uint32_t begin = row.next;
            const std::uint32_t end = row.end;
            if (begin == end || RowSet::number(keys[begin]) >= until) continue;
            std::uint32_t k = begin;
            // Calls use(gradient) for each of the block.
            const auto for_each = [&](auto use) __attribute__((always_inline)) {
                do
                    use(from.even_terms(RowSet::number(keys[k])));
                while (++k != end && RowSet::number(keys[k]) < until);
            };
            if constexpr (Dim > 0) {
                detail::RowSum<Dim> sum{to};
                for_each([&](const float* gradient) __attribute__((always_inline)) { sum.add(gradient); });
                sum.store(to);
            } else {
                for_each([=](const float* __restrict gradient) __attribute__((always_inline)) {
                    float* __restrict sum = to;
                    for (int d = 0; d < dim; ++d)
                        sum[d] += gradient[d];
                });
            }
            row.next = k;
            prefetch(keys + k, static_cast<int>(std::min(k - begin, end - k)));  // a next block has about as many
        }
    }
    /// Adds the sums of a source to those of its host, and these to the totals, as the tree has them. A row without
    /// keys in a source adds +0.0, which changes nothing: sums that begin at +0.0 are never -0.0.
    void end_source(bool host_ends) {
        const auto move = [count = floats()](float* __restrict from, float* __restrict to) {
            for (std::size_t i = 0; i < count; ++i)
                to[i] += from[i];
            std::fill_n(from, count, 0.0F);
        };
        move(sources(), hosts());
        if (host_ends) move(hosts(), totals_);
    }

    std::array<Row, most_block_sums_ever> rows_;  // (count_): ascending
    std::size_t count_ = 0;
    std::int64_t least_ = 0;  // keys of a busy row
    std::int64_t next_ = 0;   // the first number that has not been added
    int dim_ = 0;
    bool tree_ = false;
    Topology topology_;
    float* totals_ = nullptr;  // (count_, dim): then as many sums of the host, and of the source, in progress
};

}  // namespace shardwise::inline SHARDWISE_ABI
