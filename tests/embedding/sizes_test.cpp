// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/optimizer/adam.hpp"
#include "shardwise/optimizer/sgd.hpp"
#include "shardwise/sharding/col.hpp"
#include "shardwise/sharding/dp.hpp"
#include "shardwise/sharding/row.hpp"
#include "shardwise/sharding/table.hpp"

/// \file
/// Tables of more bytes than are counted are refused by name and size, before anything is allocated.

namespace shardwise_test {
namespace {

namespace sw = shardwise;

constexpr sw::Topology two_by_two{.hosts = 2, .ranks_per_host = 2};

template <class S, class Rule>
using SizedLayer = sw::EmbeddingLayer<sw::Sharding<S>, sw::Optimizer<Rule>>;

template <class Make>
std::string complaint(Make make) {
    try {
        make();
    } catch (const sw::BadInput& error) {
        return error.what();
    }
    return {};
}

std::string too_large(const std::string& table, const std::string& bytes) {
    return "table 't', of " + table + ", brings the tables and moments of the layer to " + bytes +
           " bytes, and a layer has at most 4611686018427387904: give smaller tables";
}

/// What the layer on paper says, which is what the layer says on every rank.
template <class S, class Rule>
std::string refusal(const std::vector<sw::TableConfig>& tables) {
    using L = SizedLayer<S, Rule>;
    const std::string on_paper = complaint([&] { static_cast<void>(L::blueprint(two_by_two, tables)); });
    sw::ThreadWorld world{two_by_two};
    world.run([&](sw::ThreadCommunicator& comm) {
        EXPECT_EQ(complaint([&] { L{comm, tables}; }), on_paper) << "rank " << comm.rank();
    });
    return on_paper;
}

template <class S>
void check_sharding() {
    EXPECT_EQ((refusal<S, sw::Sgd>({{.name = "t", .rows = std::int64_t{1} << 40, .dim = 1 << 30}})),
              too_large("1099511627776 rows and dimension 1073741824", "4722366482869645213696"));
    // 2^64 + 64 bytes: 64, where the product wraps around
    EXPECT_EQ((refusal<S, sw::Sgd>({{.name = "t", .rows = 4294705160, .dim = 1073807362}})),
              too_large("4294705160 rows and dimension 1073807362", "18446744073709551616"));
}

TEST(Sizes, TablesOfMoreBytesThanAreCountedAreRefusedUnderEverySharding) {
    check_sharding<sw::Row>();
    check_sharding<sw::Col<>>();
    check_sharding<sw::Table>();
    check_sharding<sw::DP>();
}

TEST(Sizes, MomentsAndOtherTablesCountToo) {
    // 2^61 bytes of weights fit, beside as much twice over in moments they do not
    const std::vector<sw::TableConfig> large{{.name = "t", .rows = std::int64_t{1} << 31, .dim = 1 << 28}};
    EXPECT_EQ((refusal<sw::Table, sw::Adam>(large)),
              too_large("2147483648 rows and dimension 268435456", "6917529027641081856"));
    const std::vector<sw::TableConfig> three{{.name = "a", .rows = std::int64_t{1} << 31, .dim = 1 << 28},
                                             {.name = "b", .rows = std::int64_t{1} << 31, .dim = 1 << 28},
                                             {.name = "t", .rows = 8, .dim = 128}};
    EXPECT_EQ((refusal<sw::Table, sw::Sgd>(three)), too_large("8 rows and dimension 128", "4611686018427392000"));
}

TEST(Sizes, TheLargestIsDrawnAsItIs) {
    const sw::LayerBlueprint drawn = SizedLayer<sw::Table, sw::Sgd>::blueprint(
        two_by_two, {{.name = "t", .rows = std::int64_t{1} << 31, .dim = 1 << 29}});
    EXPECT_EQ(drawn.static_bytes(0), std::int64_t{1} << 62);
    EXPECT_EQ(drawn.static_bytes(1), 0);
}

TEST(Sizes, ResultsAreNoWiderThanTheirNumberOfColumns) {
    EXPECT_EQ((refusal<sw::Table, sw::Sgd>({{.name = "t", .rows = 1, .dim = 1 << 30, .features = {"x", "y"}}})),
              "the features up to 'y' have 2147483648 columns together, and a layer's results have at most 2147483647: "
              "give smaller dimensions");
}

}  // namespace
}  // namespace shardwise_test
