// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <boost/mp11.hpp>

#include "embedding.hpp"
#include "policies.hpp"
#include "shardwise/embedding/layer.hpp"

/// \file
/// What a translation unit of compositions instantiates.

namespace train_dlrm {

namespace detail {

/// Calls use(Layer, its module's config) for the layer with these policies, if there is one.
template <class S, class C, class M, class Use>
void with_composition(const Policies& policies, const sw::AnyModule::Config& module, Use use) {
    Policies named = policies;
    named.tower = M::name;
    mp::mp_for_each<mp::mp_transform<mp::mp_identity, Compositions<S, C, M>>>([&](auto identity) {
        using Named = typename decltype(identity)::type;
        if (Named::names() != named) return;
        if constexpr (Named::has_module)
            use(mp::mp_identity<typename Named::Layer>{}, module);
        else
            use(mp::mp_identity<typename Named::Layer>{}, sw::PassThrough::Config{});
    });
}

}  // namespace detail

template <class S, class C, class M>
std::unique_ptr<sw::LayerBase> make_composition(const Policies& policies, sw::CommunicatorRef comm,
                                                const std::vector<sw::TableConfig>& tables,
                                                const sw::LayerOptions& options, const sw::AnyModule::Config& module) {
    std::unique_ptr<sw::LayerBase> made;
    detail::with_composition<S, C, M>(policies, module, [&](auto identity, const auto& config) {
        using Layer = typename decltype(identity)::type;
        made = std::make_unique<Layer>(comm, tables, options, typename Layer::rule_type{}, config);
    });
    return made;
}

template <class S, class C, class M>
std::optional<sw::LayerBlueprint> draw_composition(const Policies& policies, const sw::Topology& topology,
                                                   const std::vector<sw::TableConfig>& tables, const sw::Towers& towers,
                                                   const sw::AnyModule::Config& module) {
    std::optional<sw::LayerBlueprint> drawn;
    detail::with_composition<S, C, M>(policies, module, [&](auto identity, const auto& config) {
        using Layer = typename decltype(identity)::type;
        drawn = Layer::blueprint(topology, tables, towers, typename Layer::rule_type{}, config);
    });
    return drawn;
}

}  // namespace train_dlrm
