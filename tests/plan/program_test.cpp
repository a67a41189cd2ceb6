// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/plan/program.hpp"

#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/plan/check.hpp"
#include "shardwise/plan/itinerary.hpp"
#include "toy.hpp"

/// \file
/// Flattening: where segments end, which plan a step stands in, and what the digest and the parts count.

namespace shardwise_test::toy {
namespace {

using sw::OneHost;
using sw::Peers;
using sw::Plan;
using sw::World;

/// A segment: its local steps, posts after a '>', each behind the path of its plan. "" where it has none.
std::string text_of(const sw::Segment& segment) {
    std::string text;
    const auto add = [&](const sw::Instruction& step, const char* mark) {
        if (!text.empty()) text += ' ';
        for (const std::size_t i : step.branch)
            text += std::to_string(i) + "/";
        text += mark + step.name;
    };
    for (const sw::Instruction& step : segment.local)
        add(step, "");
    for (const sw::Instruction& step : segment.posts)
        add(step, ">");
    return text;
}
using Texts = std::vector<std::string>;
Texts forward(const sw::Program& program) {
    Texts texts;
    for (std::size_t s = 0; s < program.forward; ++s)
        texts.push_back(text_of(program.segments[s]));
    return texts;
}
Texts backward(const sw::Program& program) {
    Texts texts;
    for (std::size_t s = program.forward; s < program.segments.size(); ++s)
        texts.push_back(text_of(program.segments[s]));
    return texts;
}

/// A step whose adjoint has two, and one that has none.
struct Doubled : Scale<1> {
    using Adjoint = Plan<Scale<2>, Scale<3>>;
};
TEST(Adjoint, IsTheReversalOfTheAdjointsOfTheSteps) {
    static_assert(std::is_same_v<sw::Adjoint<Plan<>>, Plan<>>);
    using A = Plan<Square<>, Refuse, Gather<World>>;
    using B = Plan<Doubled, Scale<5>>;
    static_assert(std::is_same_v<sw::Adjoint<A>, Plan<Scatter<World, 0>, SquareBack<0>>>);
    static_assert(std::is_same_v<sw::Adjoint<B>, Plan<Scale<5>, Scale<2>, Scale<3>>>);
    static_assert(std::is_same_v<sw::Adjoint<sw::Splice<A, B>>, sw::Splice<sw::Adjoint<B>, sw::Adjoint<A>>>);
    using T = sw::Together<Deal<2>, Append<2>, A, B>;  // the plans keep their order
    static_assert(std::is_same_v<T::Adjoint, Plan<sw::Together<Cut<2, 0>, Undeal<2>, sw::Adjoint<A>, sw::Adjoint<B>>>>);
    static_assert(std::is_same_v<sw::Branches<Plan<T, Scale<2>, Side<1, Plan<>>>>, mp_list<A, B, Plan<>>>);
    static_assert(sw::detail::is_together<T> && !sw::detail::is_together<Deal<2>>);
}

TEST(Program, SegmentsEndAtPosts) {
    const sw::Program program = program_of<Scale<3>, Gather<World>, Square<>, Refuse, Gather<OneHost>>();
    EXPECT_EQ(forward(program), (Texts{"Scale3 >Gather<World>", "Square Refuse >Gather<Host>", ""}));
    EXPECT_EQ(backward(program), (Texts{">Scatter<Host>", "SquareBack >Scatter<World>", "Scale3"}));
    EXPECT_EQ(forward(program_of<>()), Texts{""});
    EXPECT_EQ(backward(program_of<>()), Texts{});
}

TEST(Program, WhatSeesTrainedStateNeverStandsInAFirstSegment) {
    EXPECT_EQ(forward(program_of<Weigh<>>()), (Texts{"", "Weigh"}));
    EXPECT_EQ(backward(program_of<Weigh<>>()), (Texts{"", "WeighBack"}));
    EXPECT_EQ(forward(program_of<Scale<3>, Weigh<>, Weigh<1>>()), (Texts{"Scale3", "Weigh Weigh"}));
    const sw::Program behind = program_of<Gather<World>, Weigh<>, Scale<3>>();
    EXPECT_EQ(forward(behind), (Texts{">Gather<World>", "Weigh Scale3"}));
    EXPECT_EQ(backward(behind), (Texts{"Scale3", "WeighBack >Scatter<World>", ""}));
}

TEST(Program, WhereNothingIsLearntTrainedStateIsNotWaitedFor) {
    using P = Plan<Scale<3>, Weigh<>, Gather<World>, Weigh<1>>;
    EXPECT_EQ(forward(sw::make_program<Domain, P>()), (Texts{"Scale3", "Weigh >Gather<World>", "Weigh"}));
    const sw::Program frozen = sw::make_program<Domain, P, false>();
    EXPECT_EQ(forward(frozen), (Texts{"Scale3 Weigh >Gather<World>", "Weigh"}));
    EXPECT_EQ(backward(frozen), Texts{});
}

/// A fork and an exchange that see the weight.
struct WeighingDeal : Deal<2> {
    using Sees = mp_list<const Weight>;
};
struct WeighingGather : Gather<World> {
    using Sees = mp_list<const Room, Weight>;
};
TEST(Program, AForkOrAnExchangeThatSeesTrainedStateWaitsToo) {
    EXPECT_EQ(forward(program_of<WeighingGather>()), (Texts{"", ">Gather<World>", ""}));
    EXPECT_EQ(forward(program_of<sw::Together<WeighingDeal, Append<2>, Plan<Gather<World>>, Plan<Weigh<>>>>()),
              (Texts{"", "Deal 1/Weigh 0/>Gather<World>", "Append"}));
}

TEST(Program, SegmentsOfPlansTogetherAreOnes) {
    const sw::Program program =
        program_of<Scale<3>, Side<0, Plan<Gather<World>, Square<>, Gather<Peers, 1>>, Plan<Scale<5>>, Plan<Weigh<>>>,
                   Scale<7>>();
    EXPECT_EQ(forward(program),
              (Texts{"Scale3 Deal 1/Scale5 0/>Gather<World>", "0/Square 2/Weigh 0/>Gather<Peers>", "Append Scale7"}));
    EXPECT_EQ(backward(program), (Texts{"Scale7 Cut 1/Scale5 0/>Scatter<Peers>",
                                        "0/SquareBack 2/WeighBack 0/>Scatter<World>", "Undeal Scale3"}));
    // Behind an exchange of the trunk, nothing waits any more, not in a plan inside a plan either.
    using Inner = Side<0, Plan<Weigh<>, Gather<World>>, Plan<Weigh<>>>;
    EXPECT_EQ(
        forward(program_of<Gather<World>, Side<0, Plan<Inner>, Plan<Weigh<>>>>()),
        (Texts{">Gather<World>", "Deal 0/Deal 0/0/Weigh 0/1/Weigh 1/Weigh 0/0/>Gather<World>", "0/Append Append"}));
    EXPECT_EQ(forward(program_of<Side<0, Plan<Inner>, Plan<Weigh<>>>>()),
              (Texts{"Deal 0/Deal", "0/0/Weigh 0/1/Weigh 1/Weigh 0/0/>Gather<World>", "0/Append Append"}));
}

TEST(Program, PlansKeepTheirNumbersOnTheWayBack) {
    using First = Side<0, Plan<Scale<2>>, Plan<Scale<3>>>;
    using Second = Side<1, Plan<Scale<4>>>;
    using Third = Side<2, Plan<Scale<5>>, Plan<First, Second>, Plan<>>;
    const sw::Program program = program_of<First, Second, Third>();
    EXPECT_EQ(forward(program),
              (Texts{"Deal 0/Scale2 1/Scale3 Append Deal 2/Scale4 Append Deal 3/Scale5 4/Deal 4/0/Scale2 4/1/Scale3 "
                     "4/Append 4/Deal 4/2/Scale4 4/Append Append"}));
    EXPECT_EQ(backward(program),
              (Texts{"Cut 3/Scale5 4/Cut 4/2/Scale4 4/Undeal 4/Cut 4/0/Scale2 4/1/Scale3 4/Undeal Undeal Cut 2/Scale4 "
                     "Undeal Cut 0/Scale2 1/Scale3 Undeal"}));
    for (const sw::Segment& segment : program.segments)
        for (const sw::Instruction& step : segment.local)
            if (step.name == "Undeal" && step.branch.empty() && step.plans.size() == 1) {
                EXPECT_EQ(step.plans, (std::vector<sw::BranchPath>{{2}}));
            }
    const auto& last = program.segments[0].local.back();  // the third's merge
    EXPECT_EQ(last.plans, (std::vector<sw::BranchPath>{{3}, {4}, {5}}));
}

TEST(Program, PartsAreLanesTapesStatesAndPlans) {
    const sw::Program program = program_of<Scale<3>, Gather<World>, Side<0, Plan<Weigh<>>, Plan<>, Plan<>>>();
    std::size_t parts = 0;
    std::vector<std::size_t> counts;
    for (const sw::Segment& segment : program.segments)
        for (const auto* steps : {&segment.local, &segment.posts})
            for (const sw::Instruction& step : *steps) {
                EXPECT_EQ(step.first_part, parts) << step.name;
                counts.push_back(step.parts());
                parts += step.parts();
            }
    EXPECT_EQ(program.parts, parts);
    // Scale, Gather (tape, state); Deal (3 plans), Weigh (tape, state), Append (tape, 3 plans); Cut (tape, 3 plans),
    // WeighBack (tape, state), Undeal (3 plans); Scatter (2 tapes), Scale.
    EXPECT_EQ(counts, (std::vector<std::size_t>{1, 3, 4, 3, 5, 5, 3, 4, 3, 1}));
}

/// A local step with an exchange's name.
struct Quiet : Scale<1> {
    using Adjoint = Plan<>;
    static std::string name() { return "Pass"; }
};
struct Loud : Gather<World> {
    using Adjoint = Plan<>;
    static std::string name() { return "Pass"; }
};
struct PassRefuse : Refuse {
    static std::string name() { return "PassRefuse"; }
};
TEST(Program, TheDigestTellsNamesAndOrderAndRoundsApart) {
    const std::vector<sw::Program> programs{program_of<>(),
                                            program_of<Refuse>(),
                                            program_of<Quiet>(),
                                            program_of<Loud>(),
                                            program_of<Quiet, Loud>(),
                                            program_of<Loud, Quiet>(),
                                            program_of<Quiet, Quiet>(),
                                            program_of<PassRefuse>(),
                                            program_of<Quiet, Refuse>(),
                                            program_of<Refuse, Quiet>()};
    std::set<std::uint16_t> digests;
    for (const sw::Program& program : programs)
        digests.insert(program.digest.bits16());
    EXPECT_EQ(digests.size(), programs.size());
    EXPECT_EQ((program_of<Quiet, Loud>().digest.bits16()), programs[4].digest.bits16());
}

TEST(Program, StepsAreRenamedByWhereTheyStand) {
    using P = Plan<Scale<3>, Side<0, Plan<Scale<5>>>>;
    const auto line = sw::line_of<Domain, P>();
    const auto back = sw::line_of<Domain, sw::Adjoint<Plan<Scale<3>>>>();
    const auto named = sw::make_program(line, back, [](const sw::Instruction& step) {
        return step.name + "@" + std::to_string(step.branch.size()) + "+" + std::to_string(step.plans.size());
    });
    EXPECT_EQ(forward(named), Texts{"Scale3@0+0 Deal@0+1 0/Scale5@1+0 Append@0+1"});
    EXPECT_EQ(backward(named), Texts{"Scale3@0+0"});
    EXPECT_NE(named.digest.bits16(), sw::make_program(line, back).digest.bits16());
}

/// Forms: Append wants both plans to end alike; Narrow leads to another form.
struct Wide {};
struct Small {};
struct Narrow : Scale<1> {
    template <class Form>
    using Out = std::enable_if_t<std::is_same_v<Form, Wide>, Small>;
};
TEST(Check, TheFormAfterAPlanIsTheMergesOfItsPlans) {
    static_assert(std::is_same_v<sw::FormAfter<Wide, Plan<Scale<3>, Narrow, Scale<5>>>, Small>);
    static_assert(std::is_same_v<sw::FormAfter<Wide, Plan<Side<0, Plan<Narrow>, Plan<>>>>, Small>);
    static_assert(std::is_same_v<sw::FormAfter<Wide, Plan<Side<0, Plan<>, Plan<Narrow>>, Narrow>>, Small>);
}

/// A local step that names a group and one below it.
struct InAndUnder : Scale<1> {
    using Adjoint = Plan<>;
    using In = Peers;
    using Under = OneHost;
};
TEST(Itinerary, TellsAStepTheGroupsThatItNames) {
    const sw::Program program = program_of<InAndUnder>();
    const sw::Itinerary itinerary{program, {.hosts = 3, .ranks_per_host = 2}, 1};
    EXPECT_EQ(itinerary.stages()[0].local[0].group, (sw::Members{.size = 3, .stride = 2}));
    EXPECT_EQ(itinerary.stages()[0].local[0].under, (sw::Members{.size = 2, .stride = 1}));
}

TEST(Itinerary, PlacesStepsAndKnowsThePeersOfEachSegment) {
    const sw::Program program =
        program_of<Side<0, Plan<Gather<OneHost>, Gather<World>>, Plan<Gather<Peers>, Gather<sw::Self>>>, Gather<Peers>,
                   Gather<sw::Self>>();
    const sw::Topology topology{.hosts = 3, .ranks_per_host = 2};
    const sw::Itinerary itinerary{program, topology, 3};  // the second rank of the second host
    std::vector<std::vector<int>> peers;
    for (const sw::Stage& stage : itinerary.stages())
        peers.push_back(stage.to);
    EXPECT_EQ(peers, (std::vector<std::vector<int>>{
                         {1, 2, 5}, {0, 1, 2, 4, 5}, {1, 5}, {}, {}, {}, {1, 5}, {0, 1, 2, 4, 5}, {1, 2, 5}, {}}));
    EXPECT_EQ(itinerary.stages()[0].posts[0].group, (sw::Members{.size = 2, .stride = 1}));
    EXPECT_EQ(itinerary.stages()[0].posts[1].group, (sw::Members{.size = 3, .stride = 2}));
    EXPECT_EQ(itinerary.stages()[0].local[0].group, sw::Members{});
    EXPECT_EQ(itinerary.stages()[0].posts[1].step, &program.segments[0].posts[1]);
    std::string rounds;  // the first meets all ranks by way of a host and an index
    for (const sw::Stage& stage : itinerary.stages())
        rounds += std::string{stage.agreement.opens ? "o" : "-"} + (stage.agreement.agrees ? "a " : "- ");
    EXPECT_EQ(rounds, "o- -a o- -- -- o- -- -a o- -- ");
    EXPECT_EQ(itinerary.rank(), 3);
    EXPECT_EQ(&itinerary.program(), &program);
}

}  // namespace
}  // namespace shardwise_test::toy
