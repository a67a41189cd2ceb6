// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/embedding/kernels/fold.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/core/buffer.hpp"
#include "shardwise/embedding/kernels/pack_gradients.hpp"
#include "shardwise/embedding/kernels/row_groups.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// A row's sum has the same bits wherever its gradients lie: listed, evenly, or copied to one place.

namespace {

namespace sw = shardwise;

/// Gradients of some ranks' bags, and ids of each bag; a number is a bag.
struct Bags {
    sw::Topology topology;
    int dim = 0;
    std::int64_t rows = 0;
    std::int64_t stride = 0;
    std::vector<float> gradients;                // (bag, stride)
    std::vector<float> weights;                  // (bag)
    std::vector<std::int32_t> sources;           // (bag), ascending
    std::vector<std::vector<sw::LocalRow>> ids;  // (bag)

    [[nodiscard]] std::int64_t keys() const {
        std::int64_t count = 0;
        for (const auto& bag : ids)
            count += std::ssize(bag);
        return count;
    }
    [[nodiscard]] bool weighted() const {
        return std::any_of(weights.begin(), weights.end(), [](float weight) { return weight != 1.0F; });
    }
    [[nodiscard]] const float* gradient(std::size_t bag) const {
        return gradients.data() + static_cast<std::int64_t>(bag) * stride;
    }
};

Bags draw(std::mt19937_64& engine, int ranks, int hosts, std::int64_t most_ids, bool weighted) {
    const auto below = [&engine](std::int64_t end) {
        return static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(end));
    };
    constexpr int dims[]{1, 3, 15, 16, 17, 32, 40, 64, 128, 130};
    Bags bags;
    bags.topology = {.hosts = hosts, .ranks_per_host = ranks / hosts};
    bags.dim = dims[below(std::ssize(dims))];
    bags.rows = 1 + below(most_ids * 3);
    bags.stride = bags.dim + below(3) * 7;
    for (std::int32_t source = 0; source < ranks; ++source)
        for (std::int64_t left = 1 + below(30); left > 0; --left) {
            bags.sources.push_back(source);
            auto& ids = bags.ids.emplace_back();
            for (std::int64_t i = below(most_ids); i >= 0; --i)
                ids.push_back(static_cast<sw::LocalRow>(below(bags.rows)));
        }
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < bags.ids.size() * static_cast<std::size_t>(bags.stride); ++i)
        bags.gradients.push_back(engine() % 9 == 0 ? -0.0F : normal(engine));
    for (std::size_t i = 0; i < bags.ids.size(); ++i) {
        // products of less than a half and the least negative number are -0.0
        const float weight = engine() % 5 == 0 ? -std::numeric_limits<float>::denorm_min() : normal(engine);
        bags.weights.push_back(weighted ? weight : 1.0F);
    }
    return bags;
}

/// The bags' rows, with contributions as listed.
sw::RowSet group(const Bags& bags, sw::RowGroups& groups, std::pmr::memory_resource& memory) {
    groups.on(memory).begin(std::ssize(bags.ids), bags.keys(), 1);
    std::size_t bag = 0;
    for (sw::Contribution& c : groups.contribute(std::ssize(bags.ids))) {
        c = {.gradient = bags.gradient(bag), .weight = bags.weights[bag], .source = bags.sources[bag]};
        ++bag;
    }
    return groups.group(0, bags.dim, bags.rows, bags.keys(), [&](auto use) {
        for (std::size_t b = 0; b < bags.ids.size(); ++b)
            for (const sw::LocalRow row : bags.ids[b])
                use(row, b);
    });
}

/// The sums of all rows, by a loop of its own over the bags: rank by rank, host by host, in `Sum`.
template <class Sum>
std::vector<float> expected_sums(const Bags& bags, const sw::RowSet& set, bool one_sum) {
    const auto dim = static_cast<std::size_t>(bags.dim);
    const auto host_of = [&](std::size_t bag) { return bags.topology.host_of(bags.sources[bag]); };
    std::vector<float> sums;
    for (std::int64_t i = 0; i < set.touched(); ++i) {
        const sw::LocalRow row = set.terms(i).row;
        std::vector<Sum> total(dim);
        std::vector<Sum> host(dim);
        std::vector<Sum> rank(dim);
        for (std::size_t b = 0; b < bags.ids.size(); ++b) {
            const auto keys = std::count(bags.ids[b].begin(), bags.ids[b].end(), row);
            const bool last = b + 1 == bags.ids.size();
            const bool ends_rank = last || (!one_sum && bags.sources[b + 1] != bags.sources[b]);
            const bool ends_host = last || (!one_sum && host_of(b + 1) != host_of(b));
            if (keys == 0 && !ends_rank) continue;
            for (std::size_t d = 0; d < dim; ++d) {
                for (std::int64_t n = 0; n < keys; ++n)
                    rank[d] =
                        std::fma(static_cast<Sum>(bags.weights[b]), static_cast<Sum>(bags.gradient(b)[d]), rank[d]);
                if (ends_rank) host[d] += std::exchange(rank[d], 0);
                if (ends_host) total[d] += std::exchange(host[d], 0);
            }
        }
        for (const Sum sum : total)
            sums.push_back(static_cast<float>(sum) + 0.0F);
    }
    return sums;
}

template <class Order>
std::vector<float> folded_sums(const Bags& bags, const sw::RowSet& set) {
    const sw::OrderTraits& order = sw::order_traits<Order>;
    std::vector<typename Order::sum> scratch(static_cast<std::size_t>(order.scratch_rows * bags.dim));
    std::vector<float> sums(static_cast<std::size_t>(set.touched() * bags.dim), -7.0F);
    for (std::int64_t i = 0; i < set.touched(); ++i)
        sw::fold<Order>(set, set.terms(i), bags.topology, scratch.data(), sums.data() + i * bags.dim);
    return sums;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void expect_all_orders(const Bags& bags, const sw::RowSet& set) {
    EXPECT_TRUE(same_bits(folded_sums<sw::Tree>(bags, set), expected_sums<float>(bags, set, false)));
    EXPECT_TRUE(same_bits(folded_sums<sw::WideTree>(bags, set), expected_sums<double>(bags, set, false)));
    EXPECT_TRUE(same_bits(folded_sums<sw::Sample>(bags, set), expected_sums<float>(bags, set, true)));
}

/// The set with its gradients in its room, where that is worth it, seven by seven.
sw::RowSet pack(const sw::RowSet& set) {
    std::int64_t begin = 0;
    const sw::RowSet packed = sw::pack_gradients(set, 7, [&](const sw::RowSet& of, std::int64_t end) {
        EXPECT_TRUE(end == begin + 7 || (end > begin && end == of.contributions.count)) << begin << " to " << end;
        for (; begin < end; ++begin) {
            const auto number = static_cast<std::uint64_t>(begin);
            EXPECT_EQ(std::memcmp(of.contributions.even_terms(number), set.contributions[number].terms<float>(),
                                  static_cast<std::size_t>(set.dim) * sizeof(float)),
                      0);
        }
    });
    EXPECT_TRUE(packed.contributions.even == nullptr || begin == 0 || begin == set.contributions.count);
    return packed;
}

TEST(Fold, SumsAreTheSameWhereverGradientsLie) {
    std::mt19937_64 engine{17};
    int packed_sets = 0;
    for (int turn = 0; turn < 80; ++turn) {
        const int hosts = 1 + turn % 3;
        const Bags bags = draw(engine, turn % 4 == 0 ? 1 : 2 * hosts, turn % 4 == 0 ? 1 : hosts, turn % 2 == 0 ? 40 : 6,
                               turn % 5 < 2);
        SCOPED_TRACE(testing::Message() << "turn " << turn << ": " << bags.dim << " columns, stride " << bags.stride
                                        << ", " << bags.ids.size() << " bags of " << bags.topology.ranks() << " ranks"
                                        << (bags.weighted() ? ", weighted" : ""));
        sw::MemoryAccount memory;
        sw::RowGroups groups;
        sw::RowSet set = group(bags, groups, memory.work());
        expect_all_orders(bags, set);

        std::vector<float> room(
            static_cast<std::size_t>(sw::room_to_pack(std::ssize(bags.ids), bags.keys(), bags.dim)));
        set.room = room.data();
        const sw::RowSet packed = pack(set);
        const bool pays = !bags.weighted() && set.several_keys() >= 4 * std::ssize(bags.ids);
        EXPECT_EQ(packed.contributions.even, pays ? room.data() : nullptr);
        EXPECT_EQ(std::ssize(room), sw::room_to_pack(set));
        packed_sets += pays ? 1 : 0;
        expect_all_orders(bags, packed);

        if (bags.topology.ranks() != 1 || bags.weighted()) continue;
        sw::RowSet even = set;
        even.contributions = {
            .list = nullptr, .count = std::ssize(bags.ids), .even = bags.gradients.data(), .stride = bags.stride};
        expect_all_orders(bags, even);
        expect_all_orders(bags, pack(even));
    }
    EXPECT_GT(packed_sets, 10);
}

/// Bags of ranks, with ids that are the more frequent the lower they are.
Bags draw_skewed(std::mt19937_64& engine, int ranks, int hosts) {
    const auto below = [&engine](std::int64_t end) {
        return static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(end));
    };
    constexpr int dims[]{64, 67, 128, 144};
    Bags bags;
    bags.topology = {.hosts = hosts, .ranks_per_host = ranks / hosts};
    bags.dim = dims[below(std::ssize(dims))];
    bags.rows = 20 + below(60);
    bags.stride = bags.dim + below(2) * 5;
    for (std::int32_t source = 0; source < ranks; ++source)
        for (std::int64_t left = below(5) == 0 ? 1 : 1 + below(1600 / ranks); left > 0; --left) {
            bags.sources.push_back(source);
            auto& ids = bags.ids.emplace_back();
            for (std::int64_t i = 5 + below(4); i >= 0; --i)
                ids.push_back(static_cast<sw::LocalRow>(below(1 + below(1 + below(bags.rows)))));
        }
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < bags.ids.size() * static_cast<std::size_t>(bags.stride); ++i)
        bags.gradients.push_back(engine() % 9 == 0 || i % static_cast<std::size_t>(bags.stride) == 3 ? -0.0F
                                                                                                     : normal(engine));
    bags.weights.assign(bags.ids.size(), 1.0F);
    return bags;
}

/// The sums of a Folder that has had other sets before, and this one, too.
std::vector<float> begun_sums(sw::Folder& fold, const Bags& bags, const sw::RowSet& set) {
    static_cast<void>(fold.begin(set, bags.topology));
    const sw::RowSet begun = fold.begin(set, bags.topology);
    std::vector<float> sums(static_cast<std::size_t>(set.touched() * bags.dim), -7.0F);
    for (std::int64_t i = set.touched() - 1; i >= 0; --i)  // in no order that it could count on
        fold(begun, begun.terms(i), bags.topology, sums.data() + i * bags.dim);
    return sums;
}

TEST(BlockSums, AreThoseOfFolds) {
    std::mt19937_64 engine{29};
    sw::MemoryAccount memory;
    sw::Folder tree;
    sw::Folder wide_tree;
    sw::Folder sample;
    tree.prepare(sw::order_traits<sw::Tree>, 144, memory.work());
    wide_tree.prepare(sw::order_traits<sw::WideTree>, 144, memory.work());
    sample.prepare(sw::order_traits<sw::Sample>, 144, memory.work());
    int busy_sets = 0;
    int busy_and_weighted = 0;
    for (int turn = 0; turn < 80; ++turn) {
        const int hosts = 1 + turn % 3;
        Bags bags = draw_skewed(engine, turn % 4 == 0 ? 1 : 2 * hosts, turn % 4 == 0 ? 1 : hosts);
        if (turn % 5 == 1) bags.weights.back() = 0.5F;
        SCOPED_TRACE(testing::Message() << "turn " << turn << ": " << bags.dim << " columns, stride " << bags.stride
                                        << ", " << bags.ids.size() << " bags of " << bags.topology.ranks() << " ranks"
                                        << (bags.weighted() ? ", weighted" : ""));
        sw::RowGroups groups;
        sw::RowSet set = group(bags, groups, memory.work());
        // Of its own size, where sanitizers see what is written behind it.
        std::vector<float> room(static_cast<std::size_t>(sw::room_to_pack(set)), -3.0F);
        set.room = room.data();
        if (bags.topology.ranks() == 1 && !bags.weighted() && turn % 8 == 0)
            set.contributions = {
                .list = nullptr, .count = std::ssize(bags.ids), .even = bags.gradients.data(), .stride = bags.stride};
        sw::BlockSums sums;
        sums.choose(set, bags.topology, true);
        const bool busy = sums.size() > 0 && static_cast<std::int64_t>(sums.size()) < set.several;
        (bags.weighted() ? busy_and_weighted : busy_sets) += busy ? 1 : 0;
        EXPECT_TRUE(same_bits(begun_sums(tree, bags, set), expected_sums<float>(bags, set, false)));
        EXPECT_TRUE(same_bits(begun_sums(wide_tree, bags, set), expected_sums<double>(bags, set, false)));
        EXPECT_TRUE(same_bits(begun_sums(sample, bags, set), expected_sums<float>(bags, set, true)));
    }
    EXPECT_GT(busy_sets, 30);
    EXPECT_GT(busy_and_weighted, 5);
}

/// How many rows are busy. \param keys  of each row, one a bag from the first on, and again from there
/// \param count  of bags, dealt over the sources
std::size_t busy_rows(const std::vector<int>& keys, std::size_t count, int dim, bool room = true, int sources = 1) {
    Bags bags;
    bags.topology = {.hosts = 1, .ranks_per_host = sources};
    bags.dim = dim;
    bags.stride = dim;
    bags.rows = std::ssize(keys);
    bags.ids.resize(count);
    for (std::size_t row = 0; row < keys.size(); ++row)
        for (std::size_t k = 0; k < static_cast<std::size_t>(keys[row]); ++k)
            bags.ids[k % count].push_back(static_cast<sw::LocalRow>(row));
    bags.gradients.assign(count * static_cast<std::size_t>(dim), 1.0F);
    bags.weights.assign(count, 1.0F);
    for (std::size_t b = 0; b < count; ++b)
        bags.sources.push_back(static_cast<std::int32_t>(b * static_cast<std::size_t>(sources) / count));
    sw::MemoryAccount memory;
    sw::RowGroups groups;
    sw::RowSet set = group(bags, groups, memory.work());
    std::vector<float> place(static_cast<std::size_t>(sw::room_to_pack(set)));
    set.room = room ? place.data() : nullptr;
    sw::BlockSums sums;
    sums.choose(set, bags.topology, true);
    return sums.size();
}

TEST(BlockSums, AreOfRowsWithManyKeysThatFit) {
    // 128 columns: blocks of 128 bags. 1024 bags are 8 blocks: 32 keys make a row busy, and 64 such rows fit.
    const std::vector<int> keys{1024, 1024, 1024, 1024, 32, 31, 33};
    EXPECT_EQ(sw::BlockSums::block(128), 128);
    EXPECT_EQ(sw::BlockSums::block(1 << 20), 1) << "a row larger than a block";
    EXPECT_EQ(busy_rows(keys, 1024, 128), 6U);
    EXPECT_EQ(busy_rows(keys, 1024, 128, true, 2), 4U) << "36 keys, of 2 sources";
    EXPECT_EQ(busy_rows(keys, 1024, 128, false), 0U) << "without room";
    EXPECT_EQ(busy_rows(keys, 1024, 63), 0U) << "too narrow";
    EXPECT_EQ(busy_rows({1024, 1024, 800}, 1024, 128), 0U) << "gradients are read too seldom";
    EXPECT_EQ(busy_rows(std::vector<int>(100, 42), 1024, 128), 64U) << "no more than fit";
    EXPECT_EQ(busy_rows({1000, 1000, 1000, 1000, 32, 31}, 1000, 128), 5U) << "a part of a block is one";
    EXPECT_EQ(busy_rows({350, 350, 350, 8}, 256, 128), 4U) << "two blocks";
    EXPECT_EQ(busy_rows({350, 350, 350, 8}, 255, 128), 0U) << "less than two";
    EXPECT_EQ(busy_rows(std::vector<int>(1040, 1040), 16640, 64), 1024U) << "the most that there ever are";
}

TEST(PackGradients, LeavesWhatItMayNotCopy) {
    std::mt19937_64 engine{23};
    const Bags bags = draw(engine, 2, 1, 60, false);
    sw::MemoryAccount memory;
    sw::RowGroups groups;
    sw::RowSet set = group(bags, groups, memory.work());
    ASSERT_GE(set.several_keys(), 4 * std::ssize(bags.ids));
    EXPECT_EQ(pack(set).contributions.even, nullptr) << "without room";
    std::vector<float> room(static_cast<std::size_t>(sw::room_to_pack(set)));
    set.room = room.data();
    EXPECT_EQ(pack(set).contributions.even, room.data());
    std::vector<sw::Contribution> list(set.contributions.list, set.contributions.list + set.contributions.count);
    list.back().weight = 0.5F;
    set.contributions.list = list.data();
    EXPECT_EQ(pack(set).contributions.even, nullptr) << "weights";
    set.contributions = {.count = std::ssize(bags.ids), .even = bags.gradients.data(), .stride = bags.dim};
    EXPECT_EQ(pack(set).contributions.even, bags.gradients.data()) << "one after the other already";
}

TEST(PackGradients, AsksForRoomWhereGradientsAreReadOften) {
    EXPECT_EQ(sw::room_to_pack(100, 100, 16), 0);
    EXPECT_EQ(sw::room_to_pack(100, 200, 16), 0);
    EXPECT_EQ(sw::room_to_pack(100, 300, 16), 800);
    EXPECT_EQ(sw::room_to_pack(100, 400, 16), 1600);
    EXPECT_EQ(sw::room_to_pack(100, 9000, 16), 1600);
    EXPECT_EQ(sw::room_to_pack(100, 300, 64), (50 + 3 * 3) * 64) << "half of the copies, sums for a part of them";
    EXPECT_EQ(sw::room_to_pack(100, 9000, 64), (100 + 3 * 6) * 64);
    EXPECT_EQ(sw::room_to_pack(100'000, 9'000'000, 64), (100'000 + 3 * 1024) * 64);
    EXPECT_EQ(sw::room_to_pack(0, 0, 16), 0);
}

}  // namespace
