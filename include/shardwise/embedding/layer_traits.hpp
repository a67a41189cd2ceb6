// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/core/digest.hpp"
#include "shardwise/embedding/plans.hpp"
#include "shardwise/embedding/store.hpp"
#include "shardwise/embedding/tower_module.hpp"
#include "shardwise/optimizer/optimizer.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/sharding/placement.hpp"
#include "shardwise/sharding/policy.hpp"

/// \file
/// What a layer's policies say, as values: all that differs from one composition to the next. Everything else of a
/// layer is compiled once.

namespace shardwise::inline SHARDWISE_ABI {

/// A sharding policy's maps, its type forgotten.
struct ShardingMaps {
    std::string name;
    Placement (*place)(const Topology&, const std::vector<TableConfig>&, const std::vector<int>& chosen,
                       const std::vector<int>& towers) = nullptr;
    void (*initialize)(Store&, const Placement&, std::uint64_t seed) = nullptr;
    std::int64_t (*row)(const RowPlace&, const TableShape&) = nullptr;
    bool by_load = false;  ///< places blocks of columns by load
};

/// A layer's policies as values.
struct LayerTraits {
    bool pooled = true;
    bool mixed = false;
    bool hierarchical = false;            ///< tables are placed in towers
    std::vector<ShardingMaps> shardings;  ///< (branch)
    std::string optimizer;                ///< the rule's name
    int element_slots = 0;
    int row_slots = 0;
    std::shared_ptr<const void> rule;  ///< the optimizer's constants
    std::int64_t rule_digest = 0;      ///< of those that the rule adds
    ModuleTraits module;               ///< of each tower
    Program program;
};

namespace detail {

template <class S>
ShardingMaps sharding_maps() {
    return {.name = S::name,
            .place = &place_tables<S>,
            .initialize = &shardwise::initialize<S>,
            .row = [](const RowPlace& place, const TableShape& table) { return S::row(place, table); },
            .by_load = PlacesByLoad<S> && S::splits == Splits::columns};
}
template <class... S>
std::vector<ShardingMaps> sharding_maps_of(boost::mp11::mp_list<S...>) {
    return {sharding_maps<S>()...};
}

/// Of the constants of a rule that has `add_to(Digest&)`; of none otherwise.
template <class Rule>
std::int64_t digest_of(const Rule& rule) {
    Digest digest;
    if constexpr (requires { rule.add_to(digest); }) rule.add_to(digest);
    return digest.bits16();
}

}  // namespace detail

/// The policies P (a LayerPolicies) as values. \throws BadInput for constants that the rule's `check()` refuses
template <class P>
[[nodiscard]] LayerTraits layer_traits(const typename P::rule& rule, const typename P::module::Config& module) {
    using Rule = typename P::rule;
    check_rule(rule);
    return {.pooled = P::pooling::pooled,
            .mixed = P::mixed,
            .hierarchical = std::is_same_v<typename P::collective, Hierarchical>,
            .shardings = detail::sharding_maps_of(typename P::shardings{}),
            .optimizer = Rule::name,
            .element_slots = Rule::element_slots,
            .row_slots = Rule::row_slots,
            .rule = std::make_shared<const Rule>(rule),
            .rule_digest = detail::digest_of(rule),
            .module = detail::module_traits<typename P::module>(module),
            .program = make_program<EmbeddingDomain, PlanOf<P>>()};
}

}  // namespace shardwise::inline SHARDWISE_ABI
