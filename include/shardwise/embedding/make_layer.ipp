// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>

#include "shardwise/core/at.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/compose/axes.hpp"
#include "shardwise/embedding/compose/layer_traits.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/embedding/steps/coalesce.hpp"
#include "shardwise/embedding/steps/fork_tables.hpp"
#include "shardwise/optimizer/adagrad.hpp"
#include "shardwise/optimizer/adam.hpp"
#include "shardwise/optimizer/frozen.hpp"
#include "shardwise/optimizer/rms_prop.hpp"
#include "shardwise/optimizer/rowwise_adagrad.hpp"
#include "shardwise/optimizer/sgd.hpp"
#include "shardwise/sharding/col.hpp"
#include "shardwise/sharding/dp.hpp"
#include "shardwise/sharding/flex.hpp"
#include "shardwise/sharding/row.hpp"
#include "shardwise/sharding/table.hpp"

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

template <class Axis>
std::vector<std::string> names_on() {
    std::vector<std::string> names;
    boost::mp11::mp_for_each<boost::mp11::mp_transform<boost::mp11::mp_identity, typename Axis::values>>(
        [&](auto value) { names.emplace_back(decltype(value)::type::name); });
    return names;
}
/// \throws BadInput where `name` is none of `names`
SHARDWISE_INLINE std::size_t find_name(const char* axis, const std::string& name,
                                       const std::vector<std::string>& names) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
    std::string text = concat({axis, " '", name, "': there is no such policy; give one of "});
    for (std::size_t i = 0; i < names.size(); ++i)
        text += (i == 0 ? "" : ", ") + names[i];
    throw BadInput{text};
}
/// What `of` says of an axis' value of that name. \throws BadInput where there is none
template <class Axis, class Of>
auto value_on(const char* axis, const std::string& name, Of of) {
    using Values = typename Axis::values;
    return boost::mp11::mp_with_index<boost::mp11::mp_size<Values>>(
        find_name(axis, name, names_on<Axis>()),
        [&](auto i) { return of(boost::mp11::mp_identity<boost::mp11::mp_at_c<Values, decltype(i)::value>>{}); });
}
template <class C>
constexpr LayerFacts::Way way_of() {
    using Way = LayerFacts::Way;
    if (std::is_same_v<C, CollectiveOf<Way::two_stage>>) return Way::two_stage;
    return std::is_same_v<C, CollectiveOf<Way::hierarchical>> ? Way::hierarchical : Way::flat;
}
SHARDWISE_INLINE LayerFacts::Way way_named(const std::string& name) {
    return value_on<CollectiveAxis>("collective", name,
                                    []<class C>(boost::mp11::mp_identity<C>) { return way_of<C>(); });
}
SHARDWISE_INLINE bool bounded_named(const std::string& name) {
    return value_on<CollectiveAxis>("collective", name,
                                    []<class C>(boost::mp11::mp_identity<C>) { return is_bounded<C>; });
}
SHARDWISE_INLINE Pools pools_named(const std::string& name) {
    return value_on<PoolingAxis>("pooling", name, []<class P>(boost::mp11::mp_identity<P>) { return pools_of<P>(); });
}
SHARDWISE_INLINE bool coalesced_named(const std::string& name) {
    return value_on<RequestsAxis>("requests", name,
                                  []<class R>(boost::mp11::mp_identity<R>) { return std::is_same_v<R, Coalesced>; });
}
SHARDWISE_INLINE bool at_owner_named(const std::string& name) {
    return value_on<IdsAxis>("ids", name,
                             []<class I>(boost::mp11::mp_identity<I>) { return std::is_same_v<I, AtOwner>; });
}
SHARDWISE_INLINE const OrderTraits* order_named(const std::string& name) {
    return value_on<OrderAxis>("order", name, []<class O>(boost::mp11::mp_identity<O>) { return &order_traits<O>; });
}

template <class T, class Name>
std::vector<std::string> names_of(const std::vector<T>& all, Name name) {
    std::vector<std::string> names;
    for (const T& one : all)
        names.push_back(name(one));
    return names;
}

SHARDWISE_INLINE bool is_tier_order(const std::vector<std::string>& names) {
    bool found = false;
    boost::mp11::mp_for_each<boost::mp11::mp_transform<boost::mp11::mp_identity, TierOrders>>(
        [&]<class... S>(boost::mp11::mp_identity<Tiered<S...>>) {
            found |= names == std::vector<std::string>{S::name...};
        });
    return found;
}

/// Fills in the names in braces of a step: those of the layer, and of the plan that it stands in.
class FillIn {
  public:
    FillIn(const LayerTraits& traits, const LayerNames& names)
        : traits_{traits}, pooling_{pooling_of_plans(traits, names.pooling)} {
        const Codec& backward = traits.wires.backward;
        const std::string partial = traits.wide_partial_sums() ? "fp64" : backward.name;
        all_ = {{"{bags}", names.pooling},
                {"{optimizer}", traits.rule->name()},
                {"{order}", traits.order->name},
                {"{forward}", traits.wires.forward.name},
                {"{backward}", backward.name},
                {"{partial}", partial},
                {"{gradient}", traits.coalesced ? partial : backward.name},
                {"{module}", traits.module == nullptr ? "pass" : traits.module->name()}};
    }
    std::string operator()(const Instruction& step) const {
        std::string text = step.name;
        for (const auto& [from, to] : all_)
            replace(text, from, to);
        const std::size_t around = traits_.coalesced ? 1 : 0;  // plans of the branch that all others stand in
        const std::size_t plan = step.branch.size() <= around ? 0 : step.branch.back();
        const bool by_table = traits_.pools == Pools::by_table && !traits_.coalesced;
        replace(text, "{sharding}", traits_.shardings[by_table ? plan / 2 : plan].name);
        replace(text, "{pooling}", !by_table ? pooling_ : plan % 2 == 0 ? "pooled" : "none");
        return text;
    }

  private:
    static std::string pooling_of_plans(const LayerTraits& traits, const std::string& asked) {
        if (traits.coalesced) return "none";
        return traits.tiered && asked == "mean" ? "sum" : asked;
    }
    static void replace(std::string& text, const std::string& from, const std::string& to) {
        const std::size_t first = text.find(from);
        if (first != std::string::npos) text.replace(first, from.size(), to);
    }
    const LayerTraits& traits_;
    std::string pooling_;
    std::vector<std::pair<std::string, std::string>> all_;
};

/// The program of plans side by side, as a layer's traits and names have them.
SHARDWISE_INLINE Program program_of(const LayerTraits& traits, const LayerNames& names, std::span<const Line> plans,
                                    std::span<const Line> adjoints) {
    using boost::mp11::mp_list;
    Line plan = plans[0];
    Line adjoint = adjoints[0];
    LineEntry entries[4];  // of the plan and its adjoint, twice
    const auto put_inside = [&]<class Fork, class Merge, class Cut, class End>(
                                LineEntry* entry, std::span<const Line> in, std::span<const Line> back,
                                mp_list<Fork, Merge, Cut, End>) {
        entry[0] = {.step = &step_calls_of<steps::EmbeddingDomain, Fork>,
                    .merge = &step_calls_of<steps::EmbeddingDomain, Merge>,
                    .plans = in};
        entry[1] = {.step = &step_calls_of<steps::EmbeddingDomain, Cut>,
                    .merge = &step_calls_of<steps::EmbeddingDomain, End>,
                    .plans = back};
        plan = {entry, 1};
        adjoint = {entry + 1, 1};
    };
    if (traits.tiered)
        put_inside(entries, plans, adjoints,
                   mp_list<steps::ForkTiers, steps::MergeTiers, steps::CutTiers, steps::EndTiers>{});
    else if (plans.size() > 1)
        put_inside(entries, plans, adjoints,
                   mp_list<steps::ForkTables, steps::MergeTables, steps::CutTables, steps::EndTables>{});
    const Line inside[] = {plan, adjoint};
    using Expand = steps::Expand<NamedBags>;
    if (traits.coalesced)
        put_inside(entries + 2, {inside, 1}, {inside + 1, 1},
                   mp_list<steps::Coalesce, Expand, steps::SumByUnique<Expand>, steps::EndCoalesced>{});
    return make_program(plan, traits.rule->learns() ? adjoint : Line{}, FillIn{traits, names});
}

}  // namespace detail

SHARDWISE_INLINE KnownPolicies::KnownPolicies() {
    add_sharding<Row>().add_sharding<Col<>>().add_sharding<Table>().add_sharding<DP>().add_sharding<Flex>();
    add_optimizer<Sgd>().add_optimizer<Adagrad>().add_optimizer<RowwiseAdagrad<>>();
    add_optimizer<RowwiseAdagrad<MeanOfSquares>>().add_optimizer<Adam>().add_optimizer<RmsProp>();
    add_optimizer<Frozen>();
    add_wire<Fp32>().add_wire<Bf16>();
}

SHARDWISE_INLINE std::vector<std::string> KnownPolicies::names(const std::string& axis) const {
    if (axis == "sharding") return detail::names_of(shardings_, [](const Sharding& s) { return s.traits.name; });
    if (axis == "collective") return detail::names_on<CollectiveAxis>();
    if (axis == "optimizer") return detail::names_of(rules_, [](const auto& rule) { return rule->name(); });
    if (axis == "pooling") return detail::names_on<PoolingAxis>();
    if (axis == "requests") return detail::names_on<RequestsAxis>();
    if (axis == "ids") return detail::names_on<IdsAxis>();
    if (axis == "order") return detail::names_on<OrderAxis>();
    if (axis == "wire") return detail::names_of(wires_, [](const Codec& wire) { return wire.name; });
    throw BadInput{concat({"axis '", axis,
                           "': there is no such axis; give one of sharding, collective, optimizer, pooling, requests, "
                           "ids, order, wire"})};
}

SHARDWISE_INLINE void KnownPolicies::check_new(const char* axis, const std::string& name) const {
    const std::vector<std::string> known = names(axis);
    if (std::find(known.begin(), known.end(), name) != known.end())
        throw BadInput{concat({axis, " '", name, "' is known already: give your policy a name of its own"})};
}

SHARDWISE_INLINE const KnownPolicies::Sharding& KnownPolicies::sharding(const std::string& name) const {
    return shardings_[detail::find_name("sharding", name, names("sharding"))];
}
SHARDWISE_INLINE std::shared_ptr<const RowRule> KnownPolicies::rule(const LayerNames& asked) const {
    const auto& own = rules_[detail::find_name("optimizer", asked.optimizer, names("optimizer"))];
    const auto scaled = [&](const std::shared_ptr<const RowRule>& rule) {
        if (!asked.moment_scale) return rule;
        if (*asked.moment_scale == as_many_as_groups)
            throw BadInput{concat({"optimizer '", asked.optimizer,
                                   "' with a moment scale of 0: give a number above 0, or leave it out for as many as "
                                   "groups"})};
        return rule->with_moment_scale(*asked.moment_scale);
    };
    if (asked.rule == nullptr) return scaled(own);
    if (asked.rule->name() != asked.optimizer)
        throw BadInput{
            concat({"optimizer '", asked.optimizer, "' is given the constants of '", asked.rule->name(), "'"})};
    return scaled(asked.rule);
}
SHARDWISE_INLINE const Codec& KnownPolicies::wire(const std::string& name) const {
    return wires_[detail::find_name("wire", name, names("wire"))];
}

SHARDWISE_INLINE LayerFacts KnownPolicies::facts(const LayerNames& asked) const {
    LayerFacts f;
    f.way = detail::way_named(asked.collective);
    f.mixed = !asked.tiered && asked.shardings.size() > 1;
    f.tiered = asked.tiered;
    f.none_travels = true;
    f.none_crosses = true;
    const Pools pools = detail::pools_named(asked.pooling);
    for (const std::string& name : asked.shardings) {
        const ShardingTraits& one = sharding(name).traits;
        f.any_copies |= !one.in_world;
        f.none_travels &= one.alone;
        f.none_crosses &= !one.in_world;
        f.sums_parts |= one.in_world && one.splits == Splits::rows && pools != Pools::none;
    }
    f.module = asked.module != nullptr;
    f.only_sums = pools == Pools::sum;
    f.coalesced = detail::coalesced_named(asked.requests);
    f.by_sample = detail::order_named(asked.order) == &order_traits<Sample>;
    f.exact_forward = wire(asked.forward_wire).exact;
    f.sequences = pools == Pools::none || pools == Pools::by_table;
    f.at_owner = detail::at_owner_named(asked.ids);
    f.bounded = detail::bounded_named(asked.collective);
    f.learns = rule(asked)->learns();
    return f;
}

SHARDWISE_INLINE std::string KnownPolicies::refusal(const LayerNames& asked) const {
    if (asked.shardings.empty()) return "a layer has at least one sharding policy";
    for (std::size_t i = 0; i < asked.shardings.size(); ++i)
        if (std::count(asked.shardings.begin(), asked.shardings.end(), asked.shardings[i]) > 1)
            return concat({"sharding '", asked.shardings[i], "' stands twice: name each policy of a mixed layer once"});
    if (asked.tiered && !detail::is_tier_order(asked.shardings)) return SHARDWISE_TIER_ORDERS;
    static_cast<void>(rule(asked));
    static_cast<void>(wire(asked.backward_wire));
    const char* sentence = shardwise::refusal(facts(asked));
    return sentence == nullptr ? "" : sentence;
}

SHARDWISE_INLINE LayerTraits KnownPolicies::traits(const LayerNames& asked) const {
    const std::string wrong = refusal(asked);
    if (!wrong.empty()) throw BadInput{wrong};
    const LayerFacts f = facts(asked);
    LayerTraits traits;
    traits.pools = detail::pools_named(asked.pooling);
    traits.mixed = f.mixed;
    traits.tiered = f.tiered;
    traits.hierarchical = f.way == LayerFacts::Way::hierarchical;
    traits.two_stage = f.way == LayerFacts::Way::two_stage;
    traits.coalesced = f.coalesced;
    traits.at_owner = f.at_owner;
    traits.rule = rule(asked);
    traits.order = detail::order_named(asked.order);
    traits.wires = {wire(asked.forward_wire), wire(asked.backward_wire)};
    traits.module = asked.module;
    traits.bound.bounded = f.bounded;

    std::vector<Line> plans;
    std::vector<Line> adjoints;
    std::vector<Line> hot;  // of the first tier, where no other crosses the world
    std::vector<Line> hot_back;
    for (const std::string& name : asked.shardings) {
        const Sharding& one = sharding(name);
        traits.shardings.push_back(one.traits);
        const Pools pools = traits.coalesced ? Pools::none : traits.pools;
        for (const bool pooled : {true, false}) {
            if (pools != Pools::by_table && pooled == (pools == Pools::none)) continue;
            PlanShape shape{.way = one.traits.in_world ? f.way : LayerFacts::Way::flat,
                            .pooled = pooled,
                            .module = f.module,
                            .norms = traits.rule->needs_row_norm() && one.traits.splits == Splits::columns,
                            .none_crosses = f.none_crosses && !f.errors_stay(),
                            .at_owner = f.at_owner};
            const PlanLines lines = one.lines(shape);
            plans.push_back(lines.plan);
            adjoints.push_back(lines.adjoint);
            if (!traits.tiered || !one.traits.alone || traits.shardings.size() > 1) continue;
            shape.none_crosses = !f.errors_stay();
            shape.at_owner = false;
            const PlanLines alone = one.lines(shape);
            hot.push_back(alone.plan);
            hot_back.push_back(alone.adjoint);
        }
    }
    traits.program = detail::program_of(traits, asked, plans, adjoints);
    if (!hot.empty()) traits.hot_program = detail::program_of(traits, asked, hot, hot_back);
    return traits;
}
SHARDWISE_INLINE std::unique_ptr<LayerBase> make_layer(CommunicatorRef comm, std::vector<TableConfig> tables,
                                                       const LayerNames& names, const LayerOptions& options,
                                                       const KnownPolicies& known) {
    return std::make_unique<LayerBase>(comm, std::move(tables), known.traits(names), options);
}

SHARDWISE_INLINE LayerBlueprint draw_layer(const Topology& topology, std::vector<TableConfig> tables,
                                           const LayerNames& names, const LayerOptions& options,
                                           const KnownPolicies& known) {
    return {topology, std::move(tables), known.traits(names), options};
}

}  // namespace shardwise::inline SHARDWISE_ABI
