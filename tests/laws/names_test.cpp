// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/mp11.hpp>
#include <gtest/gtest.h>

#include "laws/compositions_impl.hpp"
#include "laws/scenario.hpp"
#include "shardwise/comm/thread_slots.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/compose/refusals.hpp"
#include "shardwise/plan/describe.hpp"

/// \file
/// Layers by names are the typed ones: the same programs, digests, predictions and refusals for every composition. That
/// they compute the same bits the laws say, which make layers both ways.

namespace laws {
namespace {

/// What every reader of a program sees, as text.
std::vector<std::string> steps_of(const sw::Program& program, const sw::Topology& topology) {
    std::vector<std::string> all;
    const auto add = [&](const char* kind, std::size_t segment, const sw::Instruction& step) {
        std::string text = std::to_string(segment) + kind + step.name;
        for (const std::size_t branch : step.branch)
            text += " in " + std::to_string(branch);
        for (const sw::Members& members : {step.group(topology), step.under(topology)})
            text += ", " + std::to_string(members.size) + " by " + std::to_string(members.stride);
        all.push_back(text + ", part " + std::to_string(step.first_part) + " of " + std::to_string(step.parts()));
    };
    for (std::size_t s = 0; s < program.segments.size(); ++s) {
        for (const sw::Instruction& step : program.segments[s].local)
            add(" ", s, step);
        for (const sw::Instruction& step : program.segments[s].posts)
            add(" posts ", s, step);
    }
    return all;
}

void expect_same_layers(const sw::LayerBlueprint& typed, const sw::LayerBlueprint& named) {
    const sw::Program& a = typed.traits().program;
    const sw::Program& b = named.traits().program;
    EXPECT_EQ(sw::describe(a, typed.branches()), sw::describe(b, named.branches()));
    EXPECT_EQ(steps_of(a, typed.topology()), steps_of(b, named.topology()));
    EXPECT_EQ(a.forward, b.forward);
    EXPECT_EQ(a.parts, b.parts);
    EXPECT_EQ(a.digest.bits16(), b.digest.bits16());
    EXPECT_EQ(typed.has_hot_batches(), named.has_hot_batches());
    EXPECT_EQ(steps_of(typed.traits().hot_program, typed.topology()),
              steps_of(named.traits().hot_program, named.topology()));
    EXPECT_EQ(typed.traits().hot_program.parts, named.traits().hot_program.parts);
    EXPECT_EQ(typed.digest().bits16(), named.digest().bits16());
    EXPECT_EQ(typed.branches(), named.branches());
    EXPECT_EQ(typed.topology(), named.topology());
    for (int rank = 0; rank < typed.topology().ranks(); ++rank)
        EXPECT_EQ(typed.static_bytes(rank), named.static_bytes(rank));
}

void expect_same_costs(const sw::LayerBlueprint& typed, const sw::LayerBlueprint& named,
                       const std::vector<sw::JaggedView<std::int64_t>>& batches) {
    for (int rank = 0; rank < typed.topology().ranks(); ++rank) {
        sw::MemoryTally of_typed;
        sw::MemoryTally of_named;
        const sw::LayerCost a = typed.predict_cost(batches, &of_typed, rank);
        const sw::LayerCost b = named.predict_cost(batches, &of_named, rank);
        EXPECT_EQ(a.forward, b.forward);
        EXPECT_EQ(a.backward, b.backward);
        ASSERT_EQ(a.segments.size(), b.segments.size());
        for (std::size_t s = 0; s < a.segments.size(); ++s)
            EXPECT_EQ(a.segments[s].traffic, b.segments[s].traffic);
        EXPECT_EQ(of_typed.bytes(), of_named.bytes());
        EXPECT_GT(of_typed.bytes(), 0);
    }
}

void compare(const Composition& composition, const Case& c) {
    SCOPED_TRACE(composition.name() + " at " + c.name());
    Scenario s = make_scenario(c, composition.shardings, composition.pooling != "none", composition.has_modules(),
                               composition.tiered);
    for (std::size_t t = 0; composition.pooling == "by_table" && t < s.tables.size(); ++t)
        s.tables[t].pooling = std::array{"mean", "none", "sum"}[t % 3];
    const auto tables = composition.as_declared(s.tables);
    const sw::LayerBlueprint typed = composition.draw(c.topology, tables, s.towers(c), s.row_plan());
    const sw::LayerBlueprint named = sw::draw_layer(c.topology, tables, composition.names(),
                                                    {.towers = s.towers(c), .rows = s.row_plan()}, known_policies());
    expect_same_layers(typed, named);
    for (const auto& ranks : s.steps) {
        std::vector<sw::JaggedView<std::int64_t>> views;
        for (const RankBatch& batch : ranks)
            views.push_back(batch.view(c, s.features()).wide_view);
        expect_same_costs(typed, named, views);
    }
}

/// Layers whose tables say how they are pooled, which the laws do not run over.
template <class S, class C, class R = sw::Raw>
void add_by_table(std::vector<Composition>& all) {
    all.push_back(
        composition<S, sw::ByTable, sw::RowwiseAdagrad<>, sw::Wire<sw::Fp32>, sw::Tree, C, sw::PassThrough, R>());
    all.push_back(
        composition<S, sw::ByTable, sw::Adam, sw::Wire<sw::Fp32, sw::Bf16>, sw::WideTree, C, sw::PassThrough, R>());
}

TEST(Names, MakeTheLayersThatTypesMake) {
    std::vector<Composition> all = all_compositions();
    std::erase_if(all, [](const Composition& one) { return one.draw == nullptr; });  // those have names alone
    const std::size_t first = all.size();
    add_by_table<sw::Row, sw::Flat>(all);
    add_by_table<sw::Row, sw::TwoStage>(all);
    add_by_table<sw::Row, sw::Hierarchical, sw::Coalesced>(all);
    add_by_table<sw::Tiered<sw::DP, sw::Row>, sw::Flat, sw::Coalesced>(all);
    add_by_table<sw::Row, sw::Hierarchical>(all);
    add_by_table<sw::Col<>, sw::Flat>(all);
    add_by_table<sw::Col<3>, sw::Hierarchical>(all);
    add_by_table<sw::DP, sw::Flat>(all);
    add_by_table<sw::Flex, sw::Flat>(all);
    add_by_table<sw::Mixed<sw::Flex, sw::DP>, sw::Flat>(all);
    add_by_table<sw::Tiered<sw::DP, sw::Flex, sw::Row>, sw::TwoStage>(all);
    add_by_table<sw::Tiered<sw::Flex, sw::Row>, sw::Flat>(all);
    add_by_table<sw::Mixed<sw::DP, sw::Table, sw::Row>, sw::Hierarchical>(all);
    for (std::size_t i = 0; i < all.size(); ++i) {
        for (const sw::Topology& topology : {sw::Topology{2, 2}, sw::Topology{3, 1}}) {
            Case c{.topology = topology, .seed = 100 + i, .steps = 2};
            if (all[i].collective == "hierarchical") c.towers = topology.hosts;
            compare(all[i], c);
        }
        if (::testing::Test::HasFailure()) return;  // one is enough to read
    }
    EXPECT_GT(first, 100U);
}

/// Another policy on any axis is another digest, so that ranks with other names are told.
TEST(Names, AreInTheDigest) {
    const auto digest_of = [](const auto& change) {
        sw::LayerNames names{.pooling = "by_table"};
        change(names);
        const std::string pooling = names.pooling == "by_table" ? "sum" : "";
        return sw::draw_layer({2, 2}, {{.name = "t", .rows = 9, .dim = 4, .pooling = pooling}}, names, {},
                              known_policies())
            .digest()
            .bits16();
    };
    std::set<std::uint16_t> all{digest_of([](sw::LayerNames&) {})};
    all.insert(digest_of([](sw::LayerNames& n) { n.shardings = {"table"}; }));
    all.insert(digest_of([](sw::LayerNames& n) { n.shardings = {"flex"}; }));
    all.insert(digest_of([](sw::LayerNames& n) { n.collective = "two_stage"; }));
    all.insert(digest_of([](sw::LayerNames& n) { n.optimizer = "rowwise_adagrad_mean"; }));
    all.insert(digest_of([](sw::LayerNames& n) { n.order = "sample"; }));
    all.insert(digest_of([](sw::LayerNames& n) { n.forward_wire = "bf16"; }));
    all.insert(digest_of([](sw::LayerNames& n) { n.backward_wire = "bf16"; }));
    all.insert(digest_of([](sw::LayerNames& n) { n.requests = "coalesced"; }));
    all.insert(digest_of([](sw::LayerNames& n) { n.pooling = "sum"; }));
    all.insert(digest_of([](sw::LayerNames& n) {
        n.pooling = "sum";
        n.ids = "at_owner";
    }));
    EXPECT_EQ(all.size(), 11U);
}

std::vector<std::string> all_sentences() {
    std::vector<std::string> all;
#define SHARDWISE_SENTENCE(condition, sentence) all.emplace_back(sentence);
    SHARDWISE_REFUSALS(SHARDWISE_SENTENCE)
#undef SHARDWISE_SENTENCE
    return all;
}

using boost::mp11::mp_list;
using Shardings =
    mp_list<sw::Row, sw::Col<>, sw::Table, sw::DP, sw::Flex, sw::Col<3>, sw::Mixed<sw::Row, sw::DP>,
            sw::Mixed<sw::Col<>, sw::DP>, sw::Mixed<sw::Table, sw::DP>, sw::Mixed<sw::Row, sw::Table>,
            sw::Mixed<sw::Col<>, sw::Table>, sw::Mixed<sw::Flex, sw::DP>,
            sw::Mixed<sw::DP, sw::Table, sw::Row, sw::Col<>>, sw::Mixed<sw::Flex, sw::Row, sw::Col<3>>,
            sw::Tiered<sw::DP, sw::Flex, sw::Row>, sw::Tiered<sw::DP, sw::Row>, sw::Tiered<sw::Flex, sw::Row>>;
using Modules = mp_list<sw::PassThrough, Mix>;
using Wires = mp_list<sw::Fp32, sw::Bf16>;

template <class S, class C, class P, class R, class O, class M, class F>
constexpr sw::LayerFacts facts_of_types(mp_list<S, C, P, R, O, M, F>) {
    return sw::detail::facts_of<S, C, P, R, O, F, M>();
}
template <class... Combination>
std::vector<sw::LayerFacts> facts_of_each(mp_list<Combination...>) {
    return {facts_of_types(Combination{})...};
}
/// use of each type of a list, in a vector.
template <class... T, class Use>
auto of_each(mp_list<T...>, Use use) {
    return std::vector{use(boost::mp11::mp_identity<T>{})...};
}
/// Calls use(names, the sentence that refuses the types; "" for none) for every combination of sharding, collective,
/// pooling, requests, order, wires and module.
template <class Use>
void for_all_combinations(Use use) {
    const std::vector<sw::LayerFacts> facts =
        facts_of_each(boost::mp11::mp_product<mp_list, Shardings, sw::CollectiveAxis::values, sw::PoolingAxis::values,
                                              sw::RequestsAxis::values, sw::OrderAxis::values, Modules, Wires>{});
    const auto shardings = of_each(Shardings{}, []<class S>(boost::mp11::mp_identity<S>) {
        return std::pair{names_of<typename sw::detail::ShardingsOf<S>::type>(), sw::detail::is_tiered<S>};
    });
    const auto modules =
        of_each(Modules{}, [](auto module) { return sw::module_policy<typename decltype(module)::type>({}); });
    std::size_t next = 0;
    for (const auto& [sharding, tiered] : shardings)
        for (const std::string& collective : known_policies().names("collective"))
            for (const std::string& pooling : known_policies().names("pooling"))
                for (const std::string& requests : known_policies().names("requests"))
                    for (const std::string& order : known_policies().names("order"))
                        for (const auto& module : modules)
                            for (const char* forward : {"fp32", "bf16"}) {
                                sw::LayerFacts fact = facts.at(next++);
                                for (const std::string& ids : known_policies().names("ids")) {
                                    fact.at_owner = ids == "at_owner";
                                    const char* const sentence = sw::refusal(fact);
                                    for (const char* backward : {"fp32", "bf16"})
                                        for (const char* optimizer : {"sgd", "rowwise_adagrad"})
                                            use(sw::LayerNames{.shardings = sharding,
                                                               .tiered = tiered,
                                                               .collective = collective,
                                                               .optimizer = optimizer,
                                                               .pooling = pooling,
                                                               .requests = requests,
                                                               .ids = ids,
                                                               .order = order,
                                                               .forward_wire = forward,
                                                               .backward_wire = backward,
                                                               .rule = nullptr,
                                                               .module = module},
                                                std::string{sentence == nullptr ? "" : sentence});
                                }
                            }
    ASSERT_EQ(next, facts.size());
}

std::string text_of(const sw::LayerNames& n) {
    std::string text;
    for (const std::string& sharding : n.shardings)
        text += sharding + " ";
    return text + n.collective + " " + n.optimizer + " " + n.pooling + " " + n.requests + " " + n.ids + " " + n.order +
           " " + n.forward_wire + " " + n.backward_wire + (n.module == nullptr ? "" : " module");
}

/// Two tables a policy, both pooled and not where tables say it.
std::vector<sw::TableConfig> tables_for(const sw::LayerNames& names) {
    std::vector<sw::TableConfig> tables;
    for (std::size_t t = 0; t < 2 * names.shardings.size(); ++t)
        tables.push_back({.name = "t" + std::to_string(t),
                          .rows = 7,
                          .dim = 5,
                          .features = {},
                          .sharding = names.shardings.size() == 1 || names.tiered ? "" : names.shardings[t / 2],
                          .load = 1.0F,
                          .pooling = names.pooling != "by_table" ? ""
                                     : t % 2 == 0                ? "mean"
                                                                 : "none"});
    return tables;
}

TEST(Names, AreRefusedWithTheSentencesOfTypesOrMakeALayer) {
    std::set<std::string> said;
    int made = 0;
    for_all_combinations([&](const sw::LayerNames& names, const std::string& sentence) {
        if (::testing::Test::HasFailure()) return;
        SCOPED_TRACE(text_of(names));
        EXPECT_EQ(known_policies().refusal(names), sentence);
        std::string thrown;
        try {
            const sw::BoundOptions bound{.samples = names.collective == "bounded_lag" ? 3 : 0};
            const sw::LayerBlueprint drawn =
                sw::draw_layer({2, 2}, tables_for(names), names, {.bound = bound}, known_policies());
            EXPECT_GT(drawn.traits().program.segments.size(), 0U);
            EXPECT_EQ(sw::describe(drawn.traits().program).find('{'), std::string::npos) << "a name is not filled in";
            ++made;
        } catch (const sw::BadInput& error) {
            thrown = error.what();
        }
        EXPECT_EQ(thrown, sentence);
        if (!sentence.empty()) said.insert(sentence);
    });
    const std::vector<std::string> all = all_sentences();
    EXPECT_EQ(said, (std::set<std::string>{all.begin(), all.end()})) << "a sentence is never said";
    EXPECT_GT(made, 1000);
}

TEST(Names, ThatThereAreNotAreRefused) {
    const auto refusal = [](const sw::LayerNames& names) -> std::string {
        try {
            return known_policies().refusal(names);
        } catch (const sw::BadInput& error) {
            return error.what();
        }
    };
    const auto has = [](const std::string& text, const std::string& part) {
        EXPECT_NE(text.find(part), std::string::npos) << text;
    };
    EXPECT_EQ(refusal({}), "");
    EXPECT_EQ(refusal({.shardings = {}}), "a layer has at least one sharding policy");
    EXPECT_EQ(refusal({.shardings = {"row", "row"}}),
              "sharding 'row' stands twice: name each policy of a mixed layer once");
    EXPECT_EQ(refusal({.shardings = {"no_such"}}),
              "sharding 'no_such': there is no such policy; give one of row, col, table, dp, flex, col3");
    EXPECT_EQ(refusal({.shardings = {"row", "dp"}, .tiered = true}), SHARDWISE_TIER_ORDERS);
    EXPECT_EQ(refusal({.shardings = {"row"}, .tiered = true}), SHARDWISE_TIER_ORDERS);
    EXPECT_EQ(refusal({.shardings = {"dp", "flex", "row"}, .tiered = true}), "");
    EXPECT_EQ(refusal({.collective = "ring"}),
              "collective 'ring': there is no such policy; give one of flat, two_stage, hierarchical, bounded_lag");
    EXPECT_EQ(refusal({.pooling = "max"}),
              "pooling 'max': there is no such policy; give one of sum, mean, none, by_table");
    EXPECT_EQ(refusal({.requests = "some"}), "requests 'some': there is no such policy; give one of raw, coalesced");
    EXPECT_EQ(refusal({.ids = "here"}), "ids 'here': there is no such policy; give one of at_sample, at_owner");
    EXPECT_EQ(refusal({.order = "any"}), "order 'any': there is no such policy; give one of tree, wide_tree, sample");
    EXPECT_EQ(refusal({.forward_wire = "fp8"}), "wire 'fp8': there is no such policy; give one of fp32, bf16");
    EXPECT_EQ(refusal({.backward_wire = "fp8"}), "wire 'fp8': there is no such policy; give one of fp32, bf16");
    has(refusal({.optimizer = "lion"}), "optimizer 'lion': there is no such policy; give one of sgd, adagrad, ");
    EXPECT_EQ(refusal({.optimizer = "adam", .rule = sw::make_row_rule(sw::Sgd{})}),
              "optimizer 'adam' is given the constants of 'sgd'");
    EXPECT_THROW(sw::draw_layer({1, 2}, {{.name = "t", .rows = 3, .dim = 2}}, {.order = "any"}), sw::BadInput);
}

/// A layer of these names learns one step on four ranks. \throws std::runtime_error where no weight has moved
void train_a_step(sw::ThreadCommunicator& comm, const sw::LayerNames& names) {
    const auto tables = tables_for(names);
    sw::LayerOptions options;
    options.learning_rate.base = 0.5F;
    sw::ThreadSlots slots{comm};
    if (names.collective == "bounded_lag") {
        options.bound = {.samples = 3, .ids = {6}};
        options.slots.emplace(slots);
    }
    const auto layer = sw::make_layer(comm, tables, names, options, known_policies());
    const auto weights = [&] {
        std::vector<float> all;
        layer->for_each_shard([&](const sw::ShardView& shard, const auto&) {
            all.insert(all.end(), shard.weights, shard.weights + shard.rows * shard.dim);
        });
        return all;
    };
    std::vector<sw::JaggedBatch<std::int64_t>> batches;
    std::vector<sw::JaggedView<std::int64_t>> views;
    for (int rank = 0; rank < comm.size(); ++rank) {
        sw::JaggedBatch<std::int64_t>& batch = batches.emplace_back();
        batch.samples = 3;
        batch.features = std::ssize(tables);
        for (std::size_t i = 0; i < 3 * tables.size(); ++i) {
            batch.lengths.push_back(2);
            batch.values.push_back(static_cast<std::int64_t>(i) % 7);
            batch.values.push_back((static_cast<std::int64_t>(i) + rank) % 7);
        }
        views.push_back(batch.view());
    }
    const std::vector<std::int64_t> samples(views.size(), 3);
    const auto all = sw::concatenated<std::int64_t>(views, layer->given_features());
    const std::vector<float> before = weights();
    auto flight = names.ids == "at_owner" ? layer->start(all.view(), samples)
                                          : layer->start(views[static_cast<std::size_t>(comm.rank())]);
    const sw::LayerVectors result = layer->forward(flight);
    if (result.pooled.rows() * result.pooled.columns() + std::ssize(result.sequences) == 0)
        throw std::runtime_error{"no result"};
    layer->backward(std::move(flight), result);
    const std::vector<float> after = weights();
    if (!before.empty() && before == after) throw std::runtime_error{"nothing is learnt"};
    for (const float w : after)
        if (!std::isfinite(w)) throw std::runtime_error{"a weight is no number"};
}

TEST(Names, ThatAreNotRefusedTrain) {
    int number = 0;
    int trained = 0;
    for_all_combinations([&](const sw::LayerNames& names, const std::string& sentence) {
        if (!sentence.empty() || number++ % 17 != 0) return;
        sw::ThreadWorld world{sw::ThreadWorldOptions{.topology = {2, 2}, .deadline = std::chrono::seconds{20}}};
        try {
            world.run([&](sw::ThreadCommunicator& comm) { train_a_step(comm, names); });
            ++trained;
        } catch (const std::exception& error) {
            ADD_FAILURE() << text_of(names) << ": " << error.what();
        }
    });
    EXPECT_GT(trained, 100);
}

}  // namespace
}  // namespace laws
