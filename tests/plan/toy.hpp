// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/core/buffer.hpp"
#include "shardwise/plan/cost.hpp"
#include "shardwise/plan/plan.hpp"
#include "shardwise/plan/step.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// A domain whose lanes hold a few numbers, and steps on it of every kind: local, with a tape, with a trained state,
/// exchanges that change how many numbers there are, junctions. Backward, the lanes hold gradients.

namespace shardwise_test::toy {

namespace sw = shardwise;
using boost::mp11::mp_list;

using Number = std::uint32_t;  // wraps around, so that a sum is the same in every order
using Numbers = std::vector<Number>;
using Counts = std::vector<std::int64_t>;  // (rank)

struct Domain {
    struct Lanes {
        Numbers values;
    };
    struct Cost {
        Counts counts;
        std::vector<Counts> before;  // of the Gathers that are not taken back
    };
};

inline void require(bool holds, const char* text) {
    if (!holds) throw std::logic_error{text};
}

/// K times the numbers.
template <int K>
struct Scale {
    template <class Form>
    using Out = Form;
    using Adjoint = sw::Plan<Scale>;
    using Uses = mp_list<>;
    static std::string name() { return "Scale" + std::to_string(K); }
    template <class V>
    static void run(sw::StepEnv&, V& view) {
        for (Number& x : view.lanes().values)
            x *= K;
    }
    static void shape(const sw::CostEnv&, Domain::Cost&) {}
};

template <int Tag>
struct SquareBack;
/// The squares of the numbers.
template <int Tag = 0>
struct Square {
    template <class Form>
    using Out = Form;
    using Adjoint = sw::Plan<SquareBack<Tag>>;
    using Uses = mp_list<Square>;
    struct Tape {
        Numbers in;
    };
    static std::string name() { return "Square"; }
    template <class V>
    static void run(sw::StepEnv&, V& view) {
        view.template tape<Square>().in = view.lanes().values;
        for (Number& x : view.lanes().values)
            x *= x;
    }
    static void shape(const sw::CostEnv&, Domain::Cost&) {}
};
template <int Tag>
struct SquareBack {
    using Uses = mp_list<Square<Tag>>;
    static std::string name() { return "SquareBack"; }
    template <class V>
    static void run(sw::StepEnv&, V& view) {
        const Numbers& in = view.template tape<Square<Tag>>().in;
        require(in.size() == view.lanes().values.size(), "another Square's tape");
        for (std::size_t i = 0; i < in.size(); ++i)
            view.lanes().values[i] *= 2 * in[i];
    }
    static void shape(const sw::CostEnv&, Domain::Cost&) {}
};

struct Weight {
    static constexpr bool trained = true;
    static constexpr const char* state_name = "toy weight";
    Number value = 1;
    Number gradient = 0;
};
template <int Tag>
struct WeighBack;
/// The weight times the numbers.
template <int Tag = 0>
struct Weigh {
    template <class Form>
    using Out = Form;
    using Adjoint = sw::Plan<WeighBack<Tag>>;
    using Uses = mp_list<Weigh>;
    using Sees = mp_list<const Weight>;
    struct Tape {
        Numbers in;
    };
    static std::string name() { return "Weigh"; }
    template <class V>
    static void run(sw::StepEnv&, V& view) {
        view.template tape<Weigh>().in = view.lanes().values;
        for (Number& x : view.lanes().values)
            x *= view.template state<Weight>().value;
    }
    static void shape(const sw::CostEnv&, Domain::Cost&) {}
};
template <int Tag>
struct WeighBack {
    using Uses = mp_list<Weigh<Tag>>;
    using Sees = mp_list<Weight>;
    static std::string name() { return "WeighBack"; }
    template <class V>
    static void run(sw::StepEnv&, V& view) {
        const Numbers& in = view.template tape<Weigh<Tag>>().in;
        Weight& weight = view.template state<Weight>();
        require(in.size() == view.lanes().values.size(), "another Weigh's tape");
        for (std::size_t i = 0; i < in.size(); ++i) {
            weight.gradient += view.lanes().values[i] * in[i];
            view.lanes().values[i] *= weight.value;
        }
    }
    static void shape(const sw::CostEnv&, Domain::Cost&) {}
};

/// Where buffers come from: a state that no update changes.
struct Room {
    static constexpr const char* state_name = "toy room";
    std::pmr::memory_resource* memory = nullptr;
};
template <class G, int Tag>
struct Scatter;
/// The numbers of all members, one after the other.
template <class G, int Tag = 0>
struct Gather {
    template <class Form>
    using Out = Form;
    using Adjoint = sw::Plan<Scatter<G, Tag>>;
    using Uses = mp_list<Gather>;
    using Sees = mp_list<const Room>;
    using Crosses = G;
    static std::string name() { return "Gather<" + G::name() + ">"; }

    struct Tape final : sw::Exchange {
        sw::Members group;
        Numbers* values = nullptr;
        std::vector<Numbers> parts;  // (member)
        sw::Buffer<Number> all;

        sw::PartSize size(int) override {
            return {.payload = static_cast<std::int64_t>(values->size() * sizeof(Number)), .control = sizeof(Number)};
        }
        void pack(int, sw::ByteWriter& to) override {
            to.put(static_cast<Number>(values->size()));
            to.put(values->data(), static_cast<std::int64_t>(values->size()));
        }
        void unpack(int peer, sw::ByteReader& from) override {
            const auto count = from.get<Number>();
            const Number* first = from.view<Number>(count);
            require(first != nullptr || count == 0, "a part of a Gather is too short");
            parts[static_cast<std::size_t>(group.index(peer))].assign(first, first + count);
        }
        void end() override {
            std::size_t count = 0;
            for (const Numbers& part : parts)
                count += part.size();
            Number* to = all.resize(count).data();
            for (const Numbers& part : parts)
                to = std::copy(part.begin(), part.end(), to);
            values->assign(all.data(), to);
        }
    };
    template <class V>
    static sw::Exchange& begin(sw::StepEnv& env, V& view) {
        Tape& tape = view.template tape<Gather>();
        tape.group = env.group;
        tape.values = &view.lanes().values;
        tape.parts.assign(static_cast<std::size_t>(env.group.size), {});
        tape.parts[static_cast<std::size_t>(env.group.index(env.rank))] = *tape.values;
        tape.all.on(*view.template state<Room>().memory);
        return tape;
    }
    static std::int64_t gathered(const sw::CostEnv& env, const Domain::Cost& cost, int rank) {
        std::int64_t sum = 0;
        for (int i = 0; i < env.group.size; ++i)
            sum += cost.counts[static_cast<std::size_t>(env.group.member(rank, i))];
        return sum;
    }
    static void memory(const sw::CostEnv& env, const Domain::Cost& cost, int rank, sw::MemoryTally& tally) {
        tally.need(gathered(env, cost, rank) * 4);
    }
    static void shape(const sw::CostEnv& env, Domain::Cost& cost, sw::TrafficMatrix& round) {
        Counts after;
        for (int from = 0; from < env.topology.ranks(); ++from) {
            after.push_back(gathered(env, cost, from));
            for (int i = 0; i < env.group.size; ++i)
                if (const int to = env.group.member(from, i); to != from)
                    round.at(from, to) +=
                        {.payload = cost.counts[static_cast<std::size_t>(from)] * 4, .control = 4, .messages = 0};
        }
        cost.before.push_back(std::exchange(cost.counts, after));
    }
};
/// To each member the gradients of its numbers, and their sum there.
template <class G, int Tag>
struct Scatter {
    using Uses = mp_list<Gather<G, Tag>, Scatter>;
    using Crosses = G;
    static std::string name() { return "Scatter<" + G::name() + ">"; }

    struct Tape final : sw::Exchange {
        sw::Members group;
        Numbers* values = nullptr;
        std::vector<std::size_t> begins;  // (member), and the end
        Numbers sum;

        [[nodiscard]] std::size_t begin(int rank) const { return begins[static_cast<std::size_t>(group.index(rank))]; }
        [[nodiscard]] std::size_t count(int rank) const {
            return begins[static_cast<std::size_t>(group.index(rank)) + 1] - begin(rank);
        }
        sw::PartSize size(int peer) override {
            return {.payload = static_cast<std::int64_t>(count(peer) * sizeof(Number)), .control = 0};
        }
        void pack(int peer, sw::ByteWriter& to) override {
            to.put(values->data() + begin(peer), static_cast<std::int64_t>(count(peer)));
        }
        std::int64_t expected(int) override { return static_cast<std::int64_t>(sum.size() * sizeof(Number)); }
        void unpack(int, sw::ByteReader& from) override {
            for (Number& x : sum)
                x += from.get<Number>();
        }
        void end() override { *values = sum; }
    };
    template <class V>
    static sw::Exchange& begin(sw::StepEnv& env, V& view) {
        Tape& tape = view.template tape<Scatter>();
        tape.group = env.group;
        tape.values = &view.lanes().values;
        tape.begins.assign(1, 0);
        for (const Numbers& part : view.template tape<Gather<G, Tag>>().parts)
            tape.begins.push_back(tape.begins.back() + part.size());
        require(tape.begins.back() == tape.values->size(), "another Gather's tape");
        const auto first = tape.values->begin() + static_cast<std::ptrdiff_t>(tape.begin(env.rank));
        tape.sum.assign(first, first + static_cast<std::ptrdiff_t>(tape.count(env.rank)));
        return tape;
    }
    static void shape(const sw::CostEnv& env, Domain::Cost& cost, sw::TrafficMatrix& round) {
        require(!cost.before.empty(), "another branch's Cost");
        cost.counts = cost.before.back();
        cost.before.pop_back();
        for (int from = 0; from < env.topology.ranks(); ++from)
            for (int i = 0; i < env.group.size; ++i)
                if (const int to = env.group.member(from, i); to != from)
                    round.at(from, to).payload += cost.counts[static_cast<std::size_t>(to)] * 4;
    }
};

template <int N>
struct Undeal;
/// Deals the numbers to N plans in turn.
template <int N>
struct Deal {
    template <class Form>
    using Out = Form;
    using Adjoint = Undeal<N>;
    using Uses = mp_list<>;
    static std::string name() { return "Deal"; }
    template <class V>
    static void run(sw::StepEnv&, V& view) {
        for (std::size_t i = 0; i < N; ++i)
            view.branch(i).values.clear();
        for (std::size_t i = 0; i < view.lanes().values.size(); ++i)
            view.branch(i % N).values.push_back(view.lanes().values[i]);
    }
    static void shape(const sw::CostEnv&, Domain::Cost& around, std::span<Domain::Cost* const> plans) {
        require(plans.size() == N, "a fork's cost sees its plans");
        for (std::size_t i = 0; i < N; ++i) {
            plans[i]->counts.clear();
            for (const std::int64_t count : around.counts)
                plans[i]->counts.push_back((count + N - 1 - static_cast<std::int64_t>(i)) / N);
        }
    }
};
template <int N>
struct Undeal {
    using Uses = mp_list<>;
    static std::string name() { return "Undeal"; }
    template <class V>
    static void run(sw::StepEnv&, V& view) {
        Numbers& all = view.lanes().values;
        all.clear();
        for (std::size_t i = 0; i / N < view.branch(i % N).values.size(); ++i)
            all.push_back(view.branch(i % N).values[i / N]);
    }
    static void shape(const sw::CostEnv& env, Domain::Cost& around, std::span<Domain::Cost* const> plans) {
        around.counts.assign(static_cast<std::size_t>(env.topology.ranks()), 0);
        for (const Domain::Cost* plan : plans)
            for (std::size_t rank = 0; rank < around.counts.size(); ++rank)
                around.counts[rank] += plan->counts[rank];
    }
};

template <int N, int Tag>
struct Cut;
/// What N plans made, one after the other.
template <int N, int Tag = 0>
struct Append {
    template <class... Forms>
    using Out = boost::mp11::mp_front<mp_list<Forms...>>;
    using Adjoint = Cut<N, Tag>;
    using Uses = mp_list<Append>;
    struct Tape {
        std::vector<std::size_t> sizes;  // (plan)
    };
    static std::string name() { return "Append"; }
    template <class V>
    static void run(sw::StepEnv&, V& view) {
        Numbers& all = view.lanes().values;
        auto& sizes = view.template tape<Append>().sizes;
        all.clear();
        sizes.clear();
        for (std::size_t i = 0; i < N; ++i) {
            const Numbers& part = view.branch(i).values;
            sizes.push_back(part.size());
            all.insert(all.end(), part.begin(), part.end());
        }
    }
    static void shape(const sw::CostEnv& env, Domain::Cost& around, std::span<Domain::Cost* const> plans) {
        Undeal<N>::shape(env, around, plans);
    }
};
/// The gradients of what each plan made.
template <int N, int Tag>
struct Cut {
    using Uses = mp_list<Append<N, Tag>>;
    static std::string name() { return "Cut"; }
    template <class V>
    static void run(sw::StepEnv&, V& view) {
        std::size_t begin = 0;
        for (std::size_t i = 0; i < N; ++i) {
            const std::size_t end = begin + view.template tape<Append<N, Tag>>().sizes[i];
            require(end <= view.lanes().values.size(), "another Append's tape");
            const Number* all = view.lanes().values.data();
            view.branch(i).values.assign(all + begin, all + end);
            begin = end;
        }
    }
    /// The plans' costs are still those that they ended with.
    static void shape(const sw::CostEnv&, Domain::Cost& around, std::span<Domain::Cost* const> plans) {
        std::int64_t sum = 0;
        for (const Domain::Cost* plan : plans)
            sum += plan->counts[0];
        require(sum == around.counts[0], "the plans' Costs are others than forward");
    }
};
/// Plans between Deal and Append.
template <int Tag, class... Plans>
using Side = sw::Together<Deal<sizeof...(Plans)>, Append<sizeof...(Plans), Tag>, Plans...>;

/// Finds a 13 wrong.
struct Refuse {
    template <class Form>
    using Out = Form;
    using Adjoint = sw::Plan<>;
    using Uses = mp_list<>;
    static std::string name() { return "Refuse"; }
    template <class V>
    static void run(sw::StepEnv& env, V& view) {
        for (const Number x : view.lanes().values)
            if (x == 13) env.error.note(sw::FlightError::bad_input, "13 is no number");
    }
    static void shape(const sw::CostEnv&, Domain::Cost&) {}
};

/// The domain's program of some steps.
template <class... Steps>
sw::Program program_of() {
    return sw::make_program<Domain, sw::Plan<Steps...>>();
}

}  // namespace shardwise_test::toy
