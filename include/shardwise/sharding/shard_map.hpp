// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/sharding/policy.hpp"
#include "shardwise/topology/groups.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// A sharding policy as values: its type is known where it is named, and nowhere behind that.

namespace shardwise::inline SHARDWISE_ABI {

/// The maps of one table under one policy (see ShardingPolicy); immutable.
class ShardMap {
  public:
    virtual ~ShardMap() = default;
    [[nodiscard]] virtual int shards() const = 0;
    /// The number of the rank in the home, or in the table's tower.
    [[nodiscard]] virtual int owner(int shard) const = 0;
    [[nodiscard]] virtual RowPlace place(std::int64_t row) const = 0;
    [[nodiscard]] virtual std::int64_t row(const RowPlace& place) const = 0;
    [[nodiscard]] virtual std::int64_t rows(int shard) const = 0;
    [[nodiscard]] virtual Columns columns(int shard) const = 0;
    /// The places of `ids`: shard[i] (where it is not null) and local[i].
    virtual void locate(std::span<const std::int32_t> ids, std::int32_t* shard, LocalRow* local) const = 0;
    virtual void locate(std::span<const std::int64_t> ids, std::int32_t* shard, LocalRow* local) const = 0;
};

/// A sharding policy, its type forgotten.
struct ShardingTraits {
    std::string name;
    Splits splits = Splits::nothing;
    Members (*home)(const Topology&) = nullptr;
    bool in_world = true;   ///< the home is all ranks: there is one copy
    bool alone = false;     ///< the home is one rank: each has all rows
    bool together = false;  ///< it sees all tables before it places one
    /// (table): its maps. \param topology  of one home, or tower, alone
    std::vector<std::shared_ptr<const ShardMap>> (*map)(const Topology& topology,
                                                        std::span<const TableLoad> tables) = nullptr;
};

namespace detail {

/// The mapping of a policy without one.
template <class S>
struct MappingByShape {
    Topology topology;
    TableShape table;

    [[nodiscard]] int shards() const { return table.shards; }
    [[nodiscard]] int owner(int shard) const { return S::owner(topology, table.index, shard); }
    [[nodiscard]] RowPlace place(std::int64_t row) const { return S::place(row, table); }
    [[nodiscard]] std::int64_t row(const RowPlace& place) const { return S::row(place, table); }
    [[nodiscard]] std::int64_t rows(int shard) const { return S::rows(shard, table); }
    [[nodiscard]] Columns columns(int shard) const { return S::columns(shard, table); }
};

template <TableMapping M>
class ShardMapOf final : public ShardMap {
  public:
    explicit ShardMapOf(M map) : map_{std::move(map)} {}
    [[nodiscard]] int shards() const override { return map_.shards(); }
    [[nodiscard]] int owner(int shard) const override { return map_.owner(shard); }
    [[nodiscard]] RowPlace place(std::int64_t row) const override { return map_.place(row); }
    [[nodiscard]] std::int64_t row(const RowPlace& place) const override { return map_.row(place); }
    [[nodiscard]] std::int64_t rows(int shard) const override { return map_.rows(shard); }
    [[nodiscard]] Columns columns(int shard) const override { return map_.columns(shard); }
    void locate(std::span<const std::int32_t> ids, std::int32_t* shard, LocalRow* local) const override {
        locate_all(ids, shard, local);
    }
    void locate(std::span<const std::int64_t> ids, std::int32_t* shard, LocalRow* local) const override {
        locate_all(ids, shard, local);
    }

  private:
    template <class Id>
    void locate_all(std::span<const Id> ids, std::int32_t* shard, LocalRow* local) const {
        // a copy where it is cheap: what is written cannot change it
        const std::conditional_t<std::is_trivially_copyable_v<M>, M, const M&> map = map_;
        for (std::size_t i = 0; i < ids.size(); ++i) {
            const RowPlace place = map.place(ids[i]);
            SHARDWISE_ASSERT(place.shard >= 0 && place.shard < map.shards() && place.local >= 0 &&
                             place.local < map.rows(place.shard));
            if (shard != nullptr) shard[i] = place.shard;
            local[i] = static_cast<LocalRow>(place.local);
        }
    }

    M map_;
};

}  // namespace detail

/// Policy S, its type forgotten.
template <ShardingPolicy S>
[[nodiscard]] ShardingTraits sharding_traits() {
    return {.name = S::name,
            .splits = S::splits,
            .home = [](const Topology& topology) { return HomeOf<S>::of(topology); },
            .in_world = std::is_same_v<HomeOf<S>, World>,
            .alone = std::is_same_v<HomeOf<S>, Self>,
            .together = MapsTogether<S>,
            .map =
                [](const Topology& topology, std::span<const TableLoad> tables) {
                    std::vector<std::shared_ptr<const ShardMap>> all;
                    if constexpr (MapsTogether<S>) {
                        for (auto& map : S::map(topology, tables))
                            all.push_back(std::make_shared<detail::ShardMapOf<typename S::mapping>>(std::move(map)));
                    } else {
                        for (TableLoad table : tables) {
                            table.shape.shards = S::shards(topology, table.shape.dim);
                            all.push_back(std::make_shared<detail::ShardMapOf<detail::MappingByShape<S>>>(
                                detail::MappingByShape<S>{topology, table.shape}));
                        }
                    }
                    return all;
                }};
}

}  // namespace shardwise::inline SHARDWISE_ABI
