// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "laws/bounded.hpp"

#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/comm/message_slots.hpp"
#include "shardwise/comm/thread_slots.hpp"
#include "shardwise/comm/thread_world.hpp"

/// \file
/// The laws for ranks that may be apart, over threads.

namespace laws {

const std::vector<Composition>& bounded_compositions() {
    static const std::vector<Composition> all = [] {
        std::vector<Composition> some;
        for (const Composition& one : all_compositions())
            if (auto other = bounded(one)) some.push_back(*other);
        return some;
    }();
    return all;
}

class Bounded : public testing::TestWithParam<std::size_t> {};

TEST_P(Bounded, SameMeaningAndNoSurpriseOnTheWire) {
    const Composition& composition = bounded_compositions()[GetParam()];
    const std::vector<sw::Topology> topologies{{1, 1}, {1, 2}, {2, 1}, {1, 3}, {2, 2}, {1, 4}, {3, 2}, {2, 3}, {2, 4}};
    const int full = std::getenv("SHARDWISE_FULL") != nullptr ? 10 : 1;
    const int count = full * LAW_CASES / (composition.rule.learns ? 13 : 2);
    std::size_t turn = GetParam() * 101;
    for (const Case& c : bounded_cases_for(GetParam(), topologies, count, composition)) {
        const Lag lag = lag_for(turn, c);
        const bool by_messages = turn++ % 4 == 3;
        std::vector<int> ranks(static_cast<std::size_t>(c.topology.ranks()));
        std::iota(ranks.begin(), ranks.end(), 0);
        const Expected expected = make_expected(composition, c, ranks);
        sw::ThreadWorld world{c.topology};
        try {
            world.run([&](sw::ThreadCommunicator& comm) {
                const auto check = [&](auto slots) {
                    check_bounded_or_learning(comm, *slots, composition, c, lag, expected);
                };
                if (!by_messages) return check(std::make_unique<sw::ThreadSlots>(comm));
                sw::ThreadCommunicator own = comm.duplicate();
                check(std::make_unique<sw::MessageSlots>(own));
            });
        } catch (const std::exception& error) {
            FAIL() << error.what();
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Compositions, Bounded, testing::Range(std::size_t{0}, bounded_compositions().size()),
                         [](const testing::TestParamInfo<std::size_t>& composition) {
                             std::string name = bounded_compositions()[composition.param].name();
                             for (char& ch : name)
                                 if (std::isalnum(static_cast<unsigned char>(ch)) == 0) ch = '_';
                             return name;
                         });

}  // namespace laws
