// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstdlib>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "laws/laws.hpp"
#include "shardwise/comm/thread_world.hpp"

/// \file
/// The laws over threads: every composition, ranks 1, 2, 3, 4, 6, 7 and 8 in their topologies.

namespace laws {

/// Built once: test names and every test ask for one of them.
const std::vector<Composition>& compositions() {
    static const std::vector<Composition> all = all_compositions();
    return all;
}

class Laws : public testing::TestWithParam<std::size_t> {};

TEST_P(Laws, SameMeaningAndNoSurpriseOnTheWire) {
    const Composition& composition = compositions()[GetParam()];
    const std::vector<sw::Topology> topologies{{1, 1}, {1, 2}, {2, 1}, {1, 3}, {3, 1}, {2, 2}, {1, 4},
                                               {4, 1}, {3, 2}, {2, 3}, {7, 1}, {1, 7}, {4, 2}, {2, 4}};
    const int count = std::getenv("SHARDWISE_FULL") != nullptr ? 10 * LAW_CASES : LAW_CASES;
    // coalesced, with one topology after the other
    for (const Case& c :
         cases_for(GetParam(), topologies, composition.is_coalesced() ? count / 2 : count, composition)) {
        std::vector<int> ranks(static_cast<std::size_t>(c.topology.ranks()));
        std::iota(ranks.begin(), ranks.end(), 0);
        const Expected expected = make_expected(composition, c, ranks);
        sw::ThreadWorld world{c.topology};
        try {
            world.run([&](sw::ThreadCommunicator& comm) { check_laws(comm, composition, c, expected); });
        } catch (const std::exception& error) {
            FAIL() << error.what();
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Compositions, Laws, testing::Range(std::size_t{0}, compositions().size()),
                         [](const testing::TestParamInfo<std::size_t>& composition) {
                             std::string name = compositions()[composition.param].name();
                             for (char& ch : name)
                                 if (std::isalnum(static_cast<unsigned char>(ch)) == 0) ch = '_';
                             return name;
                         });

}  // namespace laws
