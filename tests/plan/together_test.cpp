// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "shardwise/comm/counting.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/plan/flight.hpp"
#include "shardwise/plan/frame.hpp"
#include "toy.hpp"

/// \file
/// Plans side by side do what each of them does alone, forward and backward, and what their exchanges and buffers need
/// is what was predicted. The other side is a loop over all ranks that walks the plan's type, one plan after the other.

namespace shardwise_test::toy {
namespace {

using All = std::vector<Numbers>;  // (rank)

/// What plain loops make of all ranks' numbers, and the way back.
struct Ran {
    All out;
    std::function<All(All)> back;
};
struct Weights {
    std::vector<std::pair<sw::BranchPath, std::vector<Weight>>> all;  // (bound, rank)

    /// The innermost that was bound around `path`.
    std::vector<Weight>& at(sw::BranchPath path) {
        for (;; path.pop_back())
            for (auto& [branch, weights] : all)
                if (branch == path) return weights;
    }
};
struct Plain {
    sw::Topology topology;
    Weights* weights;

    template <class G>
    [[nodiscard]] bool meet(std::size_t a, std::size_t b) const {
        const auto local = static_cast<std::size_t>(topology.ranks_per_host);
        if (std::is_same_v<G, sw::World>) return true;
        return std::is_same_v<G, sw::OneHost> ? a / local == b / local : a % local == b % local;
    }
    static All map(All all, const std::function<Number(std::size_t rank, std::size_t i, Number x)>& f) {
        for (std::size_t rank = 0; rank < all.size(); ++rank)
            for (std::size_t i = 0; i < all[rank].size(); ++i)
                all[rank][i] = f(rank, i, all[rank][i]);
        return all;
    }

    template <int K>
    Ran run(std::type_identity<Scale<K>>, const All& in, const sw::BranchPath&, std::size_t) const {
        const auto scale = [](const All& all) {
            return map(all, [](std::size_t, std::size_t, Number x) { return K * x; });
        };
        return {scale(in), scale};
    }
    template <int Tag>
    Ran run(std::type_identity<Square<Tag>>, const All& in, const sw::BranchPath&, std::size_t) const {
        return {map(in, [](std::size_t, std::size_t, Number x) { return x * x; }), [in](const All& gradient) {
                    return map(gradient,
                               [&](std::size_t rank, std::size_t i, Number g) { return 2 * in[rank][i] * g; });
                }};
    }
    template <int Tag>
    Ran run(std::type_identity<Weigh<Tag>>, const All& in, const sw::BranchPath& path, std::size_t) const {
        std::vector<Weight>* w = &weights->at(path);
        return {map(in, [&](std::size_t rank, std::size_t, Number x) { return x * (*w)[rank].value; }),
                [in, w](const All& gradient) {
                    return map(gradient, [&](std::size_t rank, std::size_t i, Number g) {
                        (*w)[rank].gradient += in[rank][i] * g;
                        return g * (*w)[rank].value;
                    });
                }};
    }
    template <class G, int Tag>
    Ran run(std::type_identity<Gather<G, Tag>>, const All& in, const sw::BranchPath&, std::size_t) const {
        All out(in.size());
        for (std::size_t to = 0; to < in.size(); ++to)
            for (std::size_t from = 0; from < in.size(); ++from)
                if (meet<G>(from, to)) out[to].insert(out[to].end(), in[from].begin(), in[from].end());
        return {out, [in, plain = *this](const All& gradient) {
                    All sums = map(in, [](std::size_t, std::size_t, Number) { return 0U; });
                    for (std::size_t to = 0; to < in.size(); ++to) {
                        std::size_t at = 0;
                        for (std::size_t from = 0; from < in.size(); ++from)
                            for (std::size_t i = 0; plain.meet<G>(from, to) && i < in[from].size(); ++i)
                                sums[from][i] += gradient[to][at++];
                    }
                    return sums;
                }};
    }
    template <int N, int Tag, class... Plans>
    Ran run(std::type_identity<sw::Together<Deal<N>, Append<N, Tag>, Plans...>>, const All& in,
            const sw::BranchPath& path, std::size_t number) const {
        All out(in.size());
        std::vector<Ran> plans;
        [[maybe_unused]] const auto one = [&]<class P>(std::type_identity<P> plan) {
            const std::size_t i = plans.size();
            All mine(in.size());
            for (std::size_t rank = 0; rank < in.size(); ++rank)
                for (std::size_t j = i; j < in[rank].size(); j += N)
                    mine[rank].push_back(in[rank][j]);
            sw::BranchPath inside = path;
            inside.push_back(number + i);
            plans.push_back(run_plan(plan, mine, inside));
            for (std::size_t rank = 0; rank < in.size(); ++rank)
                out[rank].insert(out[rank].end(), plans[i].out[rank].begin(), plans[i].out[rank].end());
        };
        (one(std::type_identity<Plans>{}), ...);
        return {out, [in, plans](const All& gradient) {
                    All sums = in;
                    std::vector<std::size_t> at(in.size());
                    for (std::size_t i = 0; i < N; ++i) {
                        const All theirs = map(plans[i].out, [&](std::size_t rank, std::size_t, Number) {
                            return gradient[rank][at[rank]++];
                        });
                        const All back = plans[i].back(theirs);
                        for (std::size_t rank = 0; rank < in.size(); ++rank)
                            for (std::size_t j = 0; j < back[rank].size(); ++j)
                                sums[rank][j * N + i] = back[rank][j];
                    }
                    return sums;
                }};
    }
    template <class... Steps>
    Ran run_plan(std::type_identity<sw::Plan<Steps...>>, const All& in, const sw::BranchPath& path) const {
        All now = in;
        std::size_t plans = 0;
        std::vector<std::function<All(All)>> back;
        [[maybe_unused]] const auto one = [&]<class S>(std::type_identity<S> step) {
            Ran ran = run(step, now, path, plans);
            now = std::move(ran.out);
            back.push_back(std::move(ran.back));
            plans += boost::mp11::mp_size<sw::Branches<sw::Plan<S>>>::value;
        };
        (one(std::type_identity<Steps>{}), ...);
        return {now, [back](All gradient) {
                    for (auto step = back.rbegin(); step != back.rend(); ++step)
                        gradient = (*step)(std::move(gradient));
                    return gradient;
                }};
    }
};

Number gradient_of(std::size_t rank, std::size_t i, Number x) {
    return 5 * x + static_cast<Number>(7 * rank + i + 1);
}

/// Runs batches through one frame after the other's; everything is compared with plain loops and predictions.
template <class P>
void expect_plain(const sw::Topology& topology, const std::vector<All>& batches, const Weights& weights) {
    const sw::Program program = sw::make_program<Domain, P>();
    const auto ranks = static_cast<std::size_t>(topology.ranks());
    Weights trained = weights;
    Weights expected = weights;
    std::vector<All> outputs(batches.size(), All(ranks));
    std::vector<All> gradients = outputs;
    std::vector<sw::TrafficMatrix> sent(ranks);
    std::vector<std::vector<std::int64_t>> rounds(ranks);
    Counts held(ranks);

    sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = topology, .deadline = std::chrono::seconds{20}}};
    world.run([&](sw::ThreadCommunicator& below) {
        sw::CountingCommunicator comm{below};
        const auto rank = static_cast<std::size_t>(comm.rank());
        sw::MemoryAccount account;
        Room room{&account.work()};
        sw::States states;
        states.bind({}, room);
        for (auto& [branch, all] : trained.all)
            states.bind(branch, all[rank]);
        sw::Frame<Domain::Lanes> frame{program, states};
        const sw::Itinerary itinerary{program, topology, comm.rank()};
        sw::Flight flight{itinerary, frame.parts(), comm, account.work()};
        sw::Tracer tracer;
        tracer.record(true);
        flight.trace(&tracer);
        for (std::size_t b = 0; b < batches.size(); ++b) {
            Numbers& lane = frame.lanes().values;
            lane = batches[b][rank];
            flight.prepare(static_cast<std::uint32_t>(b), program.digest.bits16());
            flight.start();
            flight.poll();
            flight.finish_forward();
            outputs[b][rank] = lane;
            for (std::size_t i = 0; i < lane.size(); ++i)
                lane[i] = gradient_of(rank, i, lane[i]);
            flight.finish_backward();
            gradients[b][rank] = lane;
        }
        sent[rank] = comm.sent();
        held[rank] = account.dynamic_bytes();
        for (const sw::Span& span : tracer.spans())
            if (span.kind == sw::SpanKind::pack) rounds[rank].push_back(span.bytes);
    });

    const Plain plain{topology, &expected};
    for (std::size_t b = 0; b < batches.size(); ++b) {
        const Ran ran = plain.run_plan(std::type_identity<P>{}, batches[b], {});
        require(outputs[b] == ran.out, "outputs");
        require(gradients[b] == ran.back(Plain::map(ran.out, gradient_of)), "gradients");
    }
    for (std::size_t w = 0; w < weights.all.size(); ++w)
        for (std::size_t rank = 0; rank < ranks; ++rank)
            require(trained.all[w].second[rank].gradient == expected.all[w].second[rank].gradient,
                    "gradients of the weights");

    for (int rank = 0; rank < topology.ranks(); ++rank) {
        const auto me = static_cast<std::size_t>(rank);
        sw::TrafficMatrix traffic{topology};
        std::vector<std::int64_t> bytes;
        sw::MemoryTally tally;
        for (const All& batch : batches) {
            sw::CostTree<Domain::Cost> tree;
            for (const Numbers& numbers : batch)
                tree.own.counts.push_back(static_cast<std::int64_t>(numbers.size()));
            const Counts counts = tree.own.counts;
            tally.begin_batch();
            const auto costs = sw::predict(program, topology, tree, &tally, rank);
            sw::tally_messages(costs, topology, rank, tally);
            require(tree.own.counts == counts, "counts go back to where they began");
            for (const sw::SegmentCost& cost : costs)
                traffic += cost.traffic;
            for (const std::int64_t round : sw::rounds_of(costs, rank))
                bytes.push_back(round);
        }
        for (int to = 0; to < topology.ranks(); ++to)
            require(sent[me].at(rank, to) == traffic.at(rank, to), "bytes and messages");
        require(rounds[me] == bytes, "bytes of each round");
        require(held[me] == tally.bytes(), "bytes of buffers");
    }
}

/// On a random topology, with random batches, and weights that some of the plans inside have for themselves.
template <class P>
void expect_plain_somewhere() {
    const sw::Topology topology{.hosts = *rc::gen::inRange(1, 4), .ranks_per_host = *rc::gen::inRange(1, 4)};
    std::vector<All> batches(2);
    for (All& batch : batches)
        for (int rank = 0; rank < topology.ranks(); ++rank)
            batch.push_back(*rc::gen::resize(8, rc::gen::arbitrary<Numbers>()));
    Weights weights;
    for (const sw::BranchPath& branch : std::vector<sw::BranchPath>{{}, {0}, {1}, {2}, {0, 0}, {0, 1}, {0, 0, 0}}) {
        if (!branch.empty() && *rc::gen::arbitrary<bool>()) continue;
        auto& all = weights.all.emplace_back(branch, std::vector<Weight>{}).second;
        for (int rank = 0; rank < topology.ranks(); ++rank)
            all.push_back({.value = *rc::gen::arbitrary<Number>(), .gradient = 0});
    }
    expect_plain<P>(topology, batches, weights);
}

using sw::OneHost;
using sw::Peers;
using sw::Plan;
using sw::World;

/// With two exchanges, with none, and with one behind a step that sees the weight.
template <int Tag>
using Unequal = Side<Tag, Plan<Gather<World>, Square<>, Gather<Peers, 1>>, Plan<Square<>, Scale<5>>,
                     Plan<Weigh<>, Gather<OneHost>>>;

RC_GTEST_PROP(Together, UnequalPlansBetweenStepsOfTheTrunk, ()) {
    expect_plain_somewhere<Plan<Scale<3>, Unequal<0>, Square<>>>();
}
RC_GTEST_PROP(Together, FirstAndLast, ()) {
    expect_plain_somewhere<Plan<Unequal<0>>>();
}
RC_GTEST_PROP(Together, BehindAnExchangeOfTheTrunk, ()) {
    expect_plain_somewhere<Plan<Gather<OneHost>, Weigh<>, Unequal<0>, Gather<Peers>>>();
}
// The same plans twice, and then others: what a plan keeps for the way back is not another's.
RC_GTEST_PROP(Together, ThreeInOnePlan, ()) {
    using Pair = Side<2, Plan<Weigh<>, Square<>>, Plan<Gather<OneHost>, Square<>>>;
    expect_plain_somewhere<Plan<Side<0, Plan<Square<>>, Plan<Weigh<>, Square<>>, Plan<>>, Square<>,
                                Side<1, Plan<Square<>>, Plan<Weigh<>, Square<>>, Plan<>>, Gather<Peers>, Pair>>();
}
RC_GTEST_PROP(Together, ThreeLevels, ()) {
    using Third = Side<0, Plan<Weigh<>, Square<>>, Plan<Gather<Peers>, Weigh<>>, Plan<>>;
    using Second = Side<0, Plan<Square<>, Third, Gather<OneHost>>, Plan<Weigh<>>>;
    using Beside = Side<1, Plan<Weigh<>, Scale<7>, Third>>;
    expect_plain_somewhere<Plan<
        Side<0, Plan<Gather<Peers>, Second, Square<>, Beside>, Plan<Weigh<>, Gather<World>, Weigh<1>>>, Square<>>>();
}
RC_GTEST_PROP(Together, OfPlansWithoutExchanges, ()) {
    expect_plain_somewhere<Plan<Side<0, Plan<Weigh<>>>, Side<1, Plan<>, Plan<>>>>();
}

// Three plans that meet the same ranks, others, and all: still one message a peer and round.
TEST(Together, TheRoundsOfAllPlansLeaveTogether) {
    using Line = Plan<Side<0, Plan<Gather<World>, Gather<World, 1>>, Plan<Gather<OneHost>>, Plan<Gather<Peers>>>>;
    const sw::Program program = sw::make_program<Domain, Line>();
    const sw::Topology topology{.hosts = 2, .ranks_per_host = 2};
    sw::CostTree<Domain::Cost> tree;
    tree.own.counts.assign(4, 3);
    const auto costs = sw::predict(program, topology, tree);
    ASSERT_EQ(costs.size(), 4U);  // and not 8
    for (const sw::SegmentCost& cost : costs)
        for (int from = 0; from < 4; ++from)
            for (int to = 0; to < 4; ++to)
                EXPECT_EQ(cost.traffic.at(from, to).messages, from == to ? 0 : 1);
    expect_plain<Line>(topology, {All(4, {1, 2, 3})}, {{{{}, std::vector<Weight>(4)}}});
}

// Without the exchange that crosses the world, a round has messages to those alone whom one of its plans meets.
TEST(Together, ARoundReachesThoseWhomAnyPlanMeets) {
    using Line = Plan<Side<0, Plan<Gather<OneHost>>, Plan<Gather<Peers>, Gather<Peers, 1>>>>;
    const sw::Topology topology{.hosts = 2, .ranks_per_host = 3};
    sw::CostTree<Domain::Cost> tree;
    tree.own.counts.assign(6, 2);
    const auto costs = sw::predict(sw::make_program<Domain, Line>(), topology, tree);
    ASSERT_EQ(costs.size(), 4U);
    std::vector<std::int64_t> messages;
    for (const sw::SegmentCost& cost : costs) {
        messages.push_back(cost.traffic.sent_by(4).host.messages);
        messages.push_back(cost.traffic.sent_by(4).cross_host.messages);
        EXPECT_EQ(cost.traffic.at(4, 0).messages, 0);  // neither my host nor my index
    }
    EXPECT_EQ(messages, (std::vector<std::int64_t>{2, 1, 0, 1, 2, 1, 0, 1}));
    expect_plain<Line>(topology, {All(6, {1, 2})}, {{{{}, std::vector<Weight>(6)}}});
}

}  // namespace
}  // namespace shardwise_test::toy
