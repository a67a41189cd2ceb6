// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/embedding/runtime/blueprint.hpp"
#include "shardwise/embedding/runtime/layer_base.hpp"
#include "shardwise/sharding/placement.hpp"
#include "shardwise/tower/any_module.hpp"

/// \file
/// Policies are types, and this program picks among them by name at run time: what it holds is a LayerBase, and all of
/// the program but make_embedding is compiled once.

namespace train_dlrm {

namespace sw = shardwise;

/// The names of one policy of each axis.
struct Policies {
    std::string sharding = "row";
    std::vector<std::string> tiers = {"dp", "flex", "row"};  ///< of sharding "tiered"
    std::string collective = "flat";
    std::string optimizer = "rowwise_adagrad";
    std::string pooling = "sum";
    std::string requests = "raw";
    bool sequences = false;  ///< nothing is pooled, whatever `pooling` says
    std::string order = "wide_tree";
    std::string precision = {};  ///< of dense products: single, blocks or wide; empty: precision_of() says
    std::string wire = "fp32";
    std::string tower = "pass";

    friend bool operator==(const Policies&, const Policies&) = default;
};

/// The shardings that --sharding auto chooses from.
inline constexpr const char* automatic[] = {"row", "col"};
/// What --requests auto chooses from.
inline constexpr const char* automatic_requests[] = {"raw", "coalesced"};

/// Checks that every name is one of its axis, and that the policies go together; `auto` is any of `automatic`,
/// or `automatic_requests`. \throws
/// BadInput with one sentence
void check_policies(const Policies& policies);
/// What `--help` says about an axis: sharding, collective, pooling, requests, optimizer, order, precision, wire or
/// tower.
[[nodiscard]] std::string axis_help(const std::string& axis);
/// What the wire does where that is not what one may expect; otherwise empty.
[[nodiscard]] std::string wire_note(const Policies& policies);

/// The embedding layer with these policies. \param moment_scale  of the optimizer; none: as many as groups \param
/// module  of its towers, where policies.tower says so \throws BadInput for a name that there is not, and for policies
/// that do not go together
[[nodiscard]] std::unique_ptr<sw::LayerBase> make_embedding(const Policies& policies, sw::CommunicatorRef comm,
                                                            const std::vector<sw::TableConfig>& tables,
                                                            const sw::LayerOptions& options,
                                                            std::optional<float> moment_scale,
                                                            const sw::AnyModule::Config& module);

/// The same layer on paper. \param rows  of a layer with tiers; null: all in the last \throws BadInput as
/// make_embedding
[[nodiscard]] sw::LayerBlueprint draw_embedding(const Policies& policies, const sw::Topology& topology,
                                                const std::vector<sw::TableConfig>& tables, const sw::Towers& towers,
                                                const sw::AnyModule::Config& module, const sw::RowPlan* rows,
                                                const sw::GroupOptions& groups);

}  // namespace train_dlrm
