// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
#include <vector>

#include <boost/mp11.hpp>

#include "embedding.hpp"
#include "policies.hpp"
#include "shardwise/embedding/layer.hpp"

/// \file
/// What a translation unit of compositions instantiates.

namespace train_dlrm {

template <class S, class C, class M>
std::unique_ptr<sw::LayerBase> make_composition(const Policies& policies, sw::CommunicatorRef comm,
                                                const std::vector<sw::TableConfig>& tables,
                                                const sw::LayerOptions& options, const AnyModule::Config& module) {
    std::unique_ptr<sw::LayerBase> made;
    Policies named = policies;
    named.tower = M::name;
    mp::mp_for_each<mp::mp_transform<mp::mp_identity, Compositions<S, C, M>>>([&](auto identity) {
        using Named = typename decltype(identity)::type;
        using Layer = typename Named::Layer;
        if (Named::names() != named) return;
        if constexpr (Named::has_module)
            made = std::make_unique<Layer>(comm, tables, options, typename Layer::rule_type{}, module);
        else
            made = std::make_unique<Layer>(comm, tables, options);
    });
    return made;
}

}  // namespace train_dlrm
