// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/comm/wire.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/embedding/compose/axes.hpp"
#include "shardwise/embedding/compose/named_plans.hpp"
#include "shardwise/embedding/runtime/blueprint.hpp"
#include "shardwise/embedding/runtime/layer_base.hpp"
#include "shardwise/embedding/runtime/traits.hpp"
#include "shardwise/embedding/tables/row_rule.hpp"
#include "shardwise/sharding/shard_map.hpp"

/// \file
/// Layers whose policies are named at run time: the same programs, assembled from tables of step bodies under the same
/// refusals. What trainers, blueprints and planners use; nothing is instantiated for a combination.

namespace shardwise::inline SHARDWISE_ABI {

/// The policies of a layer by their names: the `name` of each policy's type, in lower case.
struct LayerNames {
    std::vector<std::string> shardings = {"row"};  ///< several: as Mixed; each table names its own
    bool tiered = false;                           ///< several: as Tiered; every table has rows in each
    std::string collective = "flat";
    std::string optimizer = "rowwise_adagrad";
    std::string pooling = "sum";    ///< sum, mean, none or by_table
    std::string requests = "raw";   ///< raw or coalesced
    std::string ids = "at_sample";  ///< at_sample or at_owner
    std::string order = "tree";
    std::string forward_wire = "fp32";
    std::string backward_wire = "fp32";
    std::shared_ptr<const RowRule> rule = nullptr;  ///< the optimizer with other constants than its own
    std::optional<float> moment_scale = {};         ///< of the optimizer's; none: as it says, or as many as groups
    std::shared_ptr<const ModulePolicy> module = nullptr;  ///< of each tower (see module_policy); null: pass

    friend bool operator==(const LayerNames&, const LayerNames&) = default;
};

/// The policies that names may mean: the library's, and those that a program adds.
class KnownPolicies {
  public:
    /// The library's: row, col, table, dp, flex; sgd, adagrad, rowwise_adagrad, rowwise_adagrad_mean, adam, rms_prop,
    /// frozen; fp32, bf16.
    KnownPolicies();

    /// One of a program's own, by its type: a ShardingPolicy, a SparseOptimizer or a WireCodec.
    /// \throws BadInput where there is one of that name already
    template <ShardingPolicy S>
    KnownPolicies& add_sharding() {
        static_assert(ShardingAxis::check<S>());
        check_new("sharding", S::name);
        shardings_.push_back({sharding_traits<S>(), &NamedPlans<S>::find});
        return *this;
    }
    template <SparseOptimizer Rule>
    KnownPolicies& add_optimizer(const Rule& rule = {}) {
        check_new("optimizer", Rule::name);
        rules_.push_back(make_row_rule(rule));
        return *this;
    }
    template <WireCodec W>
    KnownPolicies& add_wire() {
        check_new("wire", W::name);
        wires_.push_back(codec_of<W>());
        return *this;
    }

    /// The names of an axis: sharding, collective, optimizer, pooling, requests, ids, order or wire. \throws BadInput
    /// for any other
    [[nodiscard]] std::vector<std::string> names(const std::string& axis) const;
    /// The sentence that refuses these names together, as EmbeddingLayer's; empty where they make sense.
    /// \throws BadInput for a name that there is not
    [[nodiscard]] std::string refusal(const LayerNames& names) const;
    /// What a layer is made from. \throws BadInput for a name that there is not, and what makes no sense together
    [[nodiscard]] LayerTraits traits(const LayerNames& names) const;

  private:
    struct Sharding {
        ShardingTraits traits;
        PlanLines (*lines)(const PlanShape&);
    };
    void check_new(const char* axis, const std::string& name) const;
    [[nodiscard]] const Sharding& sharding(const std::string& name) const;
    [[nodiscard]] std::shared_ptr<const RowRule> rule(const LayerNames& names) const;
    [[nodiscard]] const Codec& wire(const std::string& name) const;
    [[nodiscard]] LayerFacts facts(const LayerNames& names) const;

    std::vector<Sharding> shardings_;
    std::vector<std::shared_ptr<const RowRule>> rules_;
    std::vector<Codec> wires_;
};

/// A layer with the policies of these names. Not collective; see LayerBase.
/// \throws BadInput for a name that there is not, policies that make no sense together, and as LayerBase
[[nodiscard]] std::unique_ptr<LayerBase> make_layer(CommunicatorRef comm, std::vector<TableConfig> tables,
                                                    const LayerNames& names, const LayerOptions& options = {},
                                                    const KnownPolicies& known = {});
/// The same layer on paper: what it would move and hold on a topology, without a communicator. A pure function.
/// \param options  as of make_layer; `slots`, `memory` and `tracer` have no effect
[[nodiscard]] LayerBlueprint draw_layer(const Topology& topology, std::vector<TableConfig> tables,
                                        const LayerNames& names, const LayerOptions& options = {},
                                        const KnownPolicies& known = {});

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/make_layer.ipp"
#endif
