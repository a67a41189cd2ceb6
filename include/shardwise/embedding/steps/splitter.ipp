// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "shardwise/core/prefetch.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/lanes/check_ids.hpp"
#include "shardwise/embedding/steps/splitter.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

namespace detail {

SHARDWISE_INLINE std::string Splitter::split() {
    if (std::string wrong = check_counts(); !wrong.empty()) return wrong;
    if (std::string wrong = check_sequences(); !wrong.empty()) return wrong;
    const int features = static_cast<int>(placement_.features.size());
    tape_.first.resize(static_cast<std::size_t>(features) + 1);
    tape_.first[0] = 0;
    for (int f = 0; f < features; ++f)
        at(tape_.first, f + 1) = at(tape_.first, f) + batch_.values(f);
    const auto ids = static_cast<std::size_t>(tape_.first.back());
    tape_.rows.on(memory_).resize(ids);
    if (batch_.weighted()) tape_.weights.on(memory_).resize(ids);
    if (by_rows()) {
        tape_.shard_of.on(memory_).resize(ids);
        tape_.local_of.on(memory_).resize(ids);
    }
    const auto bags = static_cast<std::size_t>(room_for_bags<std::int64_t>(placement_, pooling_, batch_));
    tape_.lengths.on(memory_).resize(bags);
    tape_.samples.on(memory_).resize(pooling_.every_bag ? 0 : bags);
    bags_ = 0;
    tape_.blocks.resize(static_cast<std::size_t>(placement_.blocks));
    std::string wrong;
    for (int f = 0; f < features; ++f) {
        const auto first_wrong = [&] {
            return first_wrong_id(batch_, f, at(placement_.features, f).name, placement_.table_of(f).name,
                                  placement_.table_of(f).rows);
        };
        if (batch_.weighted()) wrong = first_wrong();  // its weights, too
        bool good = true;
        if (wrong.empty()) batch_.with_ids(f, [&](auto values) { good = split_feature(f, values); });
        if (!good) wrong = first_wrong();
        if (!wrong.empty()) break;
    }
    return wrong;
}

SHARDWISE_INLINE std::string Splitter::check_counts() const {
    constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
    for (int f = 0; f < static_cast<int>(placement_.features.size()); ++f)
        if (batch_.values(f) > most || batch_.samples() > most / 2)
            return concat({"feature '", at(placement_.features, f).name, "' has ", batch_.values(f), " ids in ",
                           batch_.samples(), " samples, and at most ", most, " ids in ", most / 2,
                           " samples fit: give smaller batches"});
    return {};
}

SHARDWISE_INLINE std::string Splitter::check_sequences() {
    if (pooling_.pooled || !batch_.weighted()) return {};
    if (!pooling_.beside_pooled) return weights_of_a_sequence;
    for (int f = 0; f < static_cast<int>(placement_.features.size()); ++f) {
        std::string wrong = first_weighed_id(batch_, f, at(placement_.features, f).name);
        if (!wrong.empty()) return wrong;
    }
    batch_.drop_weights();
    return {};
}

template <class Id>
bool Splitter::locate(const TablePlacement& table, std::span<const Id> ids, std::int32_t* shard_of, LocalRow* rows) {
    constexpr std::size_t together = 512 / sizeof(Id);  // asked for, and checked without a branch
    constexpr std::size_t most = 8 * together;          // that are in the first cache when they are looked at again
    constexpr std::size_t ahead = 2048 / sizeof(Id);  // what a core foresees by itself ends with a page; 1 to 3 KiB do
    for (std::size_t first = 0; first < ids.size(); first += most) {
        const std::size_t end = std::min(first + most, ids.size());
        bool good = true;
        std::size_t i = first;
        for (; i + together <= end; i += together) {
            if (i + ahead + together <= ids.size()) prefetch(ids.data() + i + ahead, static_cast<int>(together));
            good &= are_rows(ids.subspan(i).template first<together>(), table.rows);
        }
        good &= are_rows(ids.subspan(i, end - i), table.rows);
        if (!good) return false;
        table.map->locate(ids.subspan(first, end - first), shard_of == nullptr ? nullptr : shard_of + first,
                          rows + first);
    }
    return true;
}

template <class Id>
bool Splitter::split_feature(int f, std::span<const Id> values) {
    const TablePlacement& table = placement_.table_of(f);
    const std::int64_t to = at(tape_.first, f);
    IdBlock* blocks = tape_.blocks.data() + at(placement_.features, f).first_block;
    for (int s = 0; s < static_cast<int>(table.shards.size()); ++s) {
        const ShardPlacement& shard = at(table.shards, s);
        blocks[s] = {.head = {.source = rank_,
                              .owner = placement_.owner(rank_, shard),
                              .feature = f,
                              .shard = s,
                              .dim = shard.columns.count,
                              .n = pooling_.distinct ? std::ssize(values) : batch_.samples()},
                     .ids = by_rows() ? 0 : std::ssize(values),
                     .lengths = pooling_.distinct ? nullptr : batch_.lengths(f),
                     .rows = tape_.rows.data() + to,
                     .weights = batch_.weighted() ? tape_.weights.data() + to : nullptr};
    }
    if (by_rows()) {
        if (!locate(table, values, tape_.shard_of.data() + to, tape_.local_of.data() + to)) return false;
        if (pooling_.distinct)
            deal_distinct(f, blocks, static_cast<int>(table.shards.size()), to);
        else
            deal(f, blocks, static_cast<int>(table.shards.size()), to);
        return true;
    }
    if (!locate(table, values, nullptr, tape_.rows.data() + to)) return false;
    if (!pooling_.every_bag && !pooling_.distinct && some_are_empty(batch_, f)) leave_empty_bags(f, blocks);
    if (batch_.weighted())
        for (std::int64_t i = 0; i < std::ssize(values); ++i)
            at(tape_.weights, to + i) = batch_.weight(batch_.first_value(f) + i);
    return true;
}

SHARDWISE_INLINE void Splitter::deal_distinct(int f, IdBlock* blocks, int shards, std::int64_t to) {
    const std::int32_t* const shard_of = tape_.shard_of.data() + to;
    const LocalRow* const local_of = tape_.local_of.data() + to;
    const std::int64_t ids = batch_.values(f);
    tape_.cursor.assign(static_cast<std::size_t>(shards), {});
    SplitTape::Cursor* const cursor = tape_.cursor.data();
    for (std::int64_t i = 0; i < ids; ++i)
        ++cursor[shard_of[i]].row;
    for (int s = 0; s < shards; ++s) {
        blocks[s].head.n = blocks[s].ids = cursor[s].row;
        blocks[s].rows = tape_.rows.data() + to;
        cursor[s].row = to;
        to += blocks[s].ids;
    }
    for (std::int64_t i = 0; i < ids; ++i)
        tape_.rows[static_cast<std::size_t>(cursor[shard_of[i]].row++)] = local_of[i];
}

SHARDWISE_INLINE void Splitter::deal(int f, IdBlock* blocks, int shards, std::int64_t to) {
    using Cursor = SplitTape::Cursor;
    const std::int32_t* const shard_of = tape_.shard_of.data() + to;
    const LocalRow* const local_of = tape_.local_of.data() + to;
    const std::int64_t first = batch_.first_value(f);
    tape_.cursor.assign(static_cast<std::size_t>(shards), {});
    Cursor* const cursor = tape_.cursor.data();
    for_ids(f, [=](std::int64_t i, std::int64_t sample) {
        Cursor& c = cursor[shard_of[i]];
        ++c.row;
        c.bag += c.sample != sample ? 1 : 0;
        c.sample = sample;
    });
    for (int s = 0; s < shards; ++s) {
        IdBlock& block = blocks[s];
        block.ids = cursor[s].row;
        block.rows = tape_.rows.data() + to;
        if (batch_.weighted()) block.weights = tape_.weights.data() + to;
        if (!pooling_.every_bag) block.head.n = cursor[s].bag;
        block.lengths = tape_.lengths.data() + bags_;
        if (!pooling_.every_bag && block.head.n != batch_.samples()) block.samples = samples_from(bags_);
        cursor[s] = {.row = to, .bag = pooling_.every_bag ? bags_ : bags_ - 1, .sample = -1};
        to += block.ids;
        bags_ += block.head.n;
    }
    if (pooling_.every_bag) {
        std::int32_t* const lengths = tape_.lengths.data();
        std::fill(lengths + cursor[0].bag, lengths + bags_, 0);
        for_ids(f, [&](std::int64_t i, std::int64_t sample) {
            Cursor& c = cursor[shard_of[i]];
            put(c.row++, local_of[i], first + i);
            ++lengths[c.bag + sample];
        });
        return;
    }
    for_ids(f, [&](std::int64_t i, std::int64_t sample) {
        Cursor& c = cursor[shard_of[i]];
        put(c.row++, local_of[i], first + i);
        if (c.sample != sample) {
            ++c.bag;
            at(tape_.samples, c.bag) = static_cast<std::int32_t>(sample);
            at(tape_.lengths, c.bag) = 0;
            c.sample = sample;
        }
        ++at(tape_.lengths, c.bag);
    });
    for (int s = 0; s < shards; ++s)
        if (blocks[s].ids == blocks[s].head.n) blocks[s].lengths = nullptr;
}

SHARDWISE_INLINE const std::int32_t* Splitter::samples_from(std::int64_t bag) const {
    static constexpr std::int32_t none = -1;
    return tape_.samples.empty() ? &none : tape_.samples.data() + bag;
}

SHARDWISE_INLINE void Splitter::put(std::int64_t to, LocalRow row, std::int64_t value) {
    at(tape_.rows, to) = row;
    if (batch_.weighted()) at(tape_.weights, to) = batch_.weight(value);
}

SHARDWISE_INLINE void Splitter::leave_empty_bags(int f, IdBlock* blocks) {
    const std::int64_t begin = bags_;
    for (std::int64_t sample = 0; sample < batch_.samples(); ++sample) {
        const std::int64_t length = batch_.length(f, sample);
        if (length == 0) continue;
        at(tape_.samples, bags_) = static_cast<std::int32_t>(sample);
        at(tape_.lengths, bags_++) = static_cast<std::int32_t>(length);
    }
    for (std::size_t s = 0; s < placement_.table_of(f).shards.size(); ++s) {
        blocks[s].head.n = bags_ - begin;
        blocks[s].lengths = blocks[s].ids == blocks[s].head.n ? nullptr : tape_.lengths.data() + begin;
        blocks[s].samples = samples_from(begin);
    }
}

/// What each shard is told of at most: any of them may have all ids.
SHARDWISE_INLINE void count_most(const Placement& placement, const PlanPooling& pooling, const BatchView& batch,
                                 std::vector<EmbeddingCost::Count>& counts) {
    for (int f = 0; f < static_cast<int>(placement.features.size()); ++f)
        for (int s = 0; s < static_cast<int>(placement.table_of(f).shards.size()); ++s) {
            EmbeddingCost::Count& count = at(counts, placement.block_index(f, s));
            count.ids = batch.values(f);
            count.bags = pooling.distinct    ? count.ids
                         : pooling.every_bag ? batch.samples()
                                             : std::min(batch.samples(), count.ids);
            count.single = pooling.distinct;
            count.at_most = !pooling.distinct;
        }
}

/// The bags of a feature that each of its shards is told of, counted sample by sample.
SHARDWISE_INLINE void count_bags(const Placement& placement, const PlanPooling& pooling, const BatchView& batch, int f,
                                 std::vector<EmbeddingCost::Count>& counts) {
    const TablePlacement& table = placement.table_of(f);
    const int shards = static_cast<int>(table.shards.size());
    if (pooling.distinct) {  // each id stands for itself
        for (int s = 0; s < shards; ++s) {
            EmbeddingCost::Count& count = at(counts, placement.block_index(f, s));
            count.bags = count.ids;
            count.single = true;
        }
        return;
    }
    std::vector<std::int64_t> here(static_cast<std::size_t>(shards));
    for (int s = 0; s < shards; ++s)
        at(counts, placement.block_index(f, s)).single = true;
    std::int64_t id = batch.first_value(f);
    for (std::int64_t sample = 0; sample < batch.samples(); ++sample) {
        std::fill(here.begin(), here.end(), placement.splits == Splits::rows ? 0 : batch.length(f, sample));
        for (const std::int64_t end = id + batch.length(f, sample); id < end; ++id)
            if (placement.splits == Splits::rows) ++at(here, table.map->place(batch.id(id)).shard);
        for (int s = 0; s < shards; ++s) {
            EmbeddingCost::Count& count = at(counts, placement.block_index(f, s));
            if (at(here, s) == 0 && !pooling.every_bag) continue;
            ++count.bags;
            count.single &= at(here, s) == 1;
        }
    }
    // where every bag travels, parts of split rows always have lengths
    if (pooling.every_bag && placement.splits == Splits::rows)
        for (int s = 0; s < shards; ++s)
            at(counts, placement.block_index(f, s)).single = false;
}

SHARDWISE_INLINE void count_blocks(EmbeddingCost& cost) {
    const Placement& placement = *cost.placement;
    const auto ranks = static_cast<std::size_t>(cost.ranks());
    const auto blocks = static_cast<std::size_t>(placement.blocks);
    cost.counts.assign(ranks, std::vector<EmbeddingCost::Count>(blocks));
    cost.ids.assign(ranks, std::vector<std::vector<std::int64_t>>(blocks));
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        const BatchView& batch = cost.batches[rank];
        if (cost.at_most) {
            count_most(placement, *cost.pooling, batch, cost.counts[rank]);
            continue;
        }
        for (int f = 0; f < static_cast<int>(placement.features.size()); ++f) {
            const TablePlacement& table = placement.table_of(f);
            const int shards = static_cast<int>(table.shards.size());
            const int cut = placement.splits == Splits::rows ? 1 : shards;  // shards that get a copy of each id
            const std::int64_t first = batch.first_value(f);
            for (std::int64_t i = 0; i < batch.values(f); ++i) {
                const RowPlace place = table.map->place(batch.id(first + i));
                for (int s = place.shard; s < place.shard + cut; ++s) {
                    const int block = placement.block_index(f, s);
                    ++at(cost.counts[rank], block).ids;
                    at(cost.ids[rank], block).push_back(place.local);
                }
            }
            count_bags(placement, *cost.pooling, batch, f, cost.counts[rank]);
        }
    }
}

}  // namespace detail

}  // namespace shardwise::inline SHARDWISE_ABI::steps
