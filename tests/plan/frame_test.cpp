// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/plan/frame.hpp"

#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "toy.hpp"

/// \file
/// What the steps of a frame see: the lanes of their plan, one tape for the way there and back, the innermost state.

namespace shardwise_test::toy {
namespace {

using sw::Plan;
using sw::World;

using Inner = Side<0, Plan<Weigh<>>, Plan<Gather<World>, Weigh<>>>;
using Twice = Plan<Weigh<>, Side<0, Plan<Weigh<>>, Plan<Inner>>, Side<1, Plan<Weigh<>>, Plan<Inner>>>;

/// (path): the parts of the steps of one name, in the order of the program.
std::multimap<sw::BranchPath, std::vector<void*>> views_of(const sw::Program& program, void* const* parts,
                                                           const std::string& name) {
    std::multimap<sw::BranchPath, std::vector<void*>> views;
    for (const sw::Segment& segment : program.segments)
        for (const auto* steps : {&segment.local, &segment.posts})
            for (const sw::Instruction& step : *steps)
                if (step.name == name)
                    views.emplace(step.branch,
                                  std::vector<void*>(parts + step.first_part, parts + step.first_part + step.parts()));
    return views;
}

TEST(States, APlanInsideSeesTheStateAroundUnlessItHasItsOwn) {
    const sw::Program program = sw::make_program<Domain, Twice>();
    Weight trunk, second, inner;
    Room room;
    sw::States states;
    states.bind({1, 1}, inner);
    states.bind({}, trunk);
    states.bind({3}, second);
    states.bind({}, room);
    const sw::Frame<Domain::Lanes> frame{program, states};
    for (const char* name : {"Weigh", "WeighBack"}) {
        std::map<sw::BranchPath, void*> seen;
        for (const auto& [branch, parts] : views_of(program, frame.parts(), name)) {
            ASSERT_EQ(parts.size(), 3U);
            seen[branch] = parts[2];
        }
        const std::map<sw::BranchPath, void*> expected{{{}, &trunk},     {{0}, &trunk}, {{1, 0}, &trunk},
                                                       {{1, 1}, &inner}, {{2}, &trunk}, {{3, 0}, &second},
                                                       {{3, 1}, &second}};
        EXPECT_EQ(seen, expected) << name;
    }
}

TEST(States, OneThatNobodyBoundIsNamed) {
    const auto complaint = [](const sw::States& states) -> std::string {
        try {
            const sw::Frame<Domain::Lanes> frame{sw::make_program<Domain, Twice>(), states};
        } catch (const std::logic_error& error) {
            return error.what();
        }
        return "";
    };
    Weight weight;
    Room room;
    sw::States states;
    EXPECT_NE(complaint(states).find("'toy weight'"), std::string::npos);
    states.bind({}, weight);
    EXPECT_NE(complaint(states).find("'toy room'"), std::string::npos);
    states.bind({1, 1}, room);  // another plan's
    EXPECT_NE(complaint(states).find("'toy room'"), std::string::npos);
    states.bind({3}, room);
    EXPECT_EQ(complaint(states), "");
}

TEST(Frame, EveryPlanHasLanesAndTapesOfItsOwnForBothWays) {
    const sw::Program program = sw::make_program<Domain, Twice>();
    Weight weight;
    Room room;
    sw::States states;
    states.bind({}, weight);
    states.bind({}, room);
    sw::Frame<Domain::Lanes> frame{program, states};
    std::map<sw::BranchPath, void*> tapes;
    std::set<void*> different;
    for (const auto& [branch, parts] : views_of(program, frame.parts(), "Weigh")) {
        EXPECT_EQ(parts[0], &frame.lanes(branch));
        tapes[branch] = parts[1];
        different.insert(parts.begin(), parts.begin() + 2);
    }
    EXPECT_EQ(different.size(), 14U);  // lanes and a tape for each of seven
    for (const auto& [branch, parts] : views_of(program, frame.parts(), "WeighBack")) {
        EXPECT_EQ(parts[0], &frame.lanes(branch));
        EXPECT_EQ(parts[1], tapes[branch]);
    }
    for (const auto& [branch, parts] : views_of(program, frame.parts(), "Scatter<World>")) {
        EXPECT_EQ(parts[1], views_of(program, frame.parts(), "Gather<World>").find(branch)->second[1]);
        EXPECT_NE(parts[1], parts[2]);  // its own comes second, as it says
    }
    for (const char* name : {"Deal", "Undeal"}) {
        const auto views = views_of(program, frame.parts(), name);
        ASSERT_EQ(views.size(), 4U);
        for (const auto& [branch, parts] : views) {
            ASSERT_EQ(parts.size(), 3U);
            EXPECT_EQ(parts[0], &frame.lanes(branch));
            if (!branch.empty()) {
                EXPECT_EQ(parts[1], &frame.lanes({branch[0], 0}));
                EXPECT_EQ(parts[2], &frame.lanes({branch[0], 1}));
            }
        }
    }
    const sw::Frame<Domain::Lanes> another{program, states};
    EXPECT_NE(another.parts()[0], frame.parts()[0]);
}

}  // namespace
}  // namespace shardwise_test::toy
