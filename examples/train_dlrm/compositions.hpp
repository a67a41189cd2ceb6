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

template <class S, class C>
std::unique_ptr<sw::LayerBase> make_composition(const Policies& policies, sw::CommunicatorRef comm,
                                                const std::vector<sw::TableConfig>& tables,
                                                const sw::LayerOptions& options) {
    std::unique_ptr<sw::LayerBase> made;
    mp::mp_for_each<mp::mp_transform<mp::mp_identity, Compositions<S, C>>>([&](auto identity) {
        using Named = typename decltype(identity)::type;
        if (Named::names() == policies) made = std::make_unique<typename Named::Layer>(comm, tables, options);
    });
    return made;
}

}  // namespace train_dlrm
