// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "trained.hpp"

/// x with a * x = 1 modulo n, where a and n have no common divisor (extended Euclid).
std::int64_t inverse_of(std::int64_t a, std::int64_t n) {
    std::int64_t x = 0, next_x = 1, rest = n, next_rest = a;
    while (next_rest != 0) {
        const std::int64_t times = rest / next_rest;
        x = std::exchange(next_x, x - times * next_x);
        rest = std::exchange(next_rest, rest - times * next_rest);
    }
    return (x % n + n) % n;
}

/// Rows by a hash that has an inverse: row r of n has the hash a r mod n, and each rank a range of hashes.
struct HashedRows {
    static constexpr const char* name = "hashed_rows";
    static constexpr sw::Splits splits = sw::Splits::rows;

    struct mapping {  // of one table
        std::int64_t n = 1, a = 1, inverse = 1, range = 1;
        int ranks = 1, dim = 1;

        int shards() const { return ranks; }
        int owner(int shard) const { return shard; }
        sw::RowPlace place(std::int64_t row) const {
            const std::int64_t hash = row * a % n;
            return {.shard = static_cast<int>(hash / range), .local = hash % range};
        }
        std::int64_t row(const sw::RowPlace& place) const { return (place.shard * range + place.local) * inverse % n; }
        std::int64_t rows(int shard) const { return std::clamp<std::int64_t>(n - shard * range, 0, range); }
        sw::Columns columns(int) const { return {.first = 0, .count = dim}; }
    };

    static std::vector<mapping> map(const sw::Topology& topology, std::span<const sw::TableLoad> tables) {
        std::vector<mapping> maps;
        for (const sw::TableLoad& table : tables) {
            const std::int64_t n = table.shape.rows;
            if (n > std::int64_t{1} << 31) throw sw::BadInput{"sharding 'hashed_rows': give at most 2^31 rows"};
            std::int64_t a = static_cast<std::int64_t>(0.618 * static_cast<double>(n)) + 1;
            while (std::gcd(a, n) != 1)
                ++a;
            const int ranks = topology.ranks();
            maps.push_back({.n = n,
                            .a = a,
                            .inverse = inverse_of(a, n),
                            .range = (n + ranks - 1) / ranks,
                            .ranks = ranks,
                            .dim = table.shape.dim});
        }
        return maps;
    }
};
static_assert(sw::ShardingPolicy<HashedRows>);

/// How many of `ids` are on the rank that has most of them, of four ranks.
template <class Map>
std::int64_t most_on_a_rank(const std::vector<std::int64_t>& ids, Map rank_of) {
    std::vector<std::int64_t> counts(4);
    for (const std::int64_t id : ids)
        ++counts[static_cast<std::size_t>(rank_of(id))];
    return *std::max_element(counts.begin(), counts.end());
}

int main() {
    for (const std::int64_t rows : {1, 2, 3, 10, 64, 97, 1000})
        for (const int ranks : {1, 2, 3, 8}) {
            const sw::TableLoad table{.shape = {.rows = rows, .dim = 4}};
            const auto map = HashedRows::map({.hosts = 1, .ranks_per_host = ranks}, {&table, 1}).front();
            std::int64_t held = 0;
            std::set<std::pair<int, std::int64_t>> places;
            for (int shard = 0; shard < map.shards(); ++shard)
                held += map.rows(shard);
            for (std::int64_t row = 0; row < rows; ++row) {
                const sw::RowPlace place = map.place(row);
                places.insert({place.shard, place.local});
                if (map.row(place) != row || place.local >= map.rows(place.shard)) require(false, "an inverse");
            }
            if (held != rows || std::ssize(places) != rows) require(false, "a place for each row");
        }

    using InOrder = sw::Order<sw::Sample>;
    const auto expected = trained<sw::Sharding<sw::Row>, InOrder>(1);
    for (const int ranks : {1, 2, 4})
        require(trained<sw::Sharding<HashedRows>, InOrder>(ranks) == expected, "the same bits as Row");

    std::vector<std::int64_t> ids;  // every fourth row is looked up, as where ids have a structure
    for (std::int64_t id = 0; id < 1000; id += 4)
        ids.push_back(id);
    const sw::TableLoad table{.shape = {.rows = 1000, .dim = 4}};
    const auto map = HashedRows::map({.hosts = 1, .ranks_per_host = 4}, {&table, 1}).front();
    const auto dealt = most_on_a_rank(ids, [](std::int64_t id) { return id % 4; });
    const auto hashed = most_on_a_rank(ids, [&](std::int64_t id) { return map.place(id).shard; });
    std::printf("of 250 look-ups, one of four ranks answers %d, hashed %d\n", int(dealt), int(hashed));
    require(hashed < 80, "look-ups are spread over the ranks");
}
