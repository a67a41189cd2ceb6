// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/jagged.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/core/source_location.hpp"
#include "shardwise/embedding/compose/layer_policies.hpp"
#include "shardwise/embedding/compose/layer_traits.hpp"
#include "shardwise/embedding/compose/plans.hpp"
#include "shardwise/embedding/runtime/blueprint.hpp"
#include "shardwise/embedding/runtime/layer_base.hpp"
#include "shardwise/plan/check.hpp"

/// \file
/// Embedding tables over all ranks of a communicator: the type that users compose.

namespace shardwise::inline SHARDWISE_ABI {

/// Embedding tables, sharded by compile-time policies over the ranks of any communicator.
///
/// `forward` looks up a batch, `backward` routes the gradient to the rows and applies the fused update. Every member
/// that takes a batch or a gradient is collective: all ranks call it in the same order, with batches of any size, also
/// empty. One instance a rank; not thread safe.
/// \tparam Policies  in any order: Sharding<> (Row), Collective<> (Flat), Optimizer<> (RowwiseAdagrad<>), Groups<> (as
///                   the options say), Pooling<> (Sum), Requests<> (Raw), Ids<> (AtSample), Order<> (Tree), Wire<>
///                   (Fp32), Tower<> (PassThrough), Device<> (Host), Element<> (float)
template <class... Policies>
class EmbeddingLayer final : public LayerBase {
  public:
    /// The policies, axis by axis.
    using policies = LayerPolicies<Policies...>;
    /// The optimizer: its constants.
    using rule_type = typename policies::rule;
    /// The constants of the towers' modules.
    using module_config = typename policies::module::Config;
    /// The plan that the policies make.
    using plan = PlanOf<policies>;
    /// Whether the result is one matrix of pooled vectors.
    static constexpr bool pooled =
        std::is_same_v<typename policies::pooling, Sum> || std::is_same_v<typename policies::pooling, Mean>;
    /// Whether the result is a matrix of rows for each feature.
    static constexpr bool sequences = std::is_same_v<typename policies::pooling, None>;
    static_assert(std::is_same_v<FormAfter<steps::Bags, plan>, steps::Outputs>,
                  "the plan of a layer leads from bags to outputs");

    /// Pooled: (samples, sum of the features' dims; with a module, of the towers' results). Sequences: (ids, dim) a
    /// feature. ByTable: both.
    using Output =
        std::conditional_t<pooled, MatrixView<const float>,
                           std::conditional_t<sequences, std::span<const MatrixView<const float>>, LayerVectors>>;
    /// A gradient has the form of the result.
    using Gradient = Output;

    /// Places and initialises the tables. Not collective; every rank gives the same arguments (the first flight
    /// throws Mismatch where tables, seed, learning rate or rule differ).
    /// \param rule  the optimizer's constants \param module  those of the towers' modules
    /// \throws BadInput for tables that make no sense, and constants that do not fit
    EmbeddingLayer(CommunicatorRef comm, std::vector<TableConfig> tables, const LayerOptions& options = {},
                   const rule_type& rule = {}, const module_config& module = {})
        : LayerBase{comm, std::move(tables), layer_traits<policies>(rule, module), options} {}

    using LayerBase::blueprint;  // this layer's own
    /// The layer on paper: what it would move and hold on a topology, without a communicator. A pure function.
    /// \param options, rule, module  as the constructor's; `slots`, `memory` and `tracer` have no effect
    /// \throws BadInput as the constructor
    [[nodiscard]] static LayerBlueprint blueprint(const Topology& topology, std::vector<TableConfig> tables,
                                                  const LayerOptions& options = {}, const rule_type& rule = {},
                                                  const module_config& module = {}) {
        return {topology, std::move(tables), layer_traits<policies>(rule, module), options};
    }

    /// The module of this rank's tower. `backward` leaves the gradients of its parameters for the samples that this
    /// rank relays: sum them over the tower (BasicTreeAllReduce<T, OneTower>), then let an optimizer learn.
    [[nodiscard]] auto& module() requires policies::has_module {
        return LayerBase::module<typename policies::module>();
    }

    /// The result of a flight's lookup; see LayerBase::forward. Collective.
    Output forward(Flight& flight, const SourceLocation& where = SourceLocation::current()) {
        return output(LayerBase::forward(flight, where));
    }
    /// Learns from a flight and ends it; see LayerBase::backward. Collective. Not of a frozen layer, whose flights end
    /// with their handles.
    void backward(Flight flight, const Gradient& gradient, const SourceLocation& where = SourceLocation::current()) {
        require_learning();
        LayerBase::backward(std::move(flight), vectors(gradient), where);
    }

    /// Looks up one batch, start to end: valid until the next call. Collective.
    template <class Id>
    Output forward(const JaggedView<Id>& batch, const SourceLocation& where = SourceLocation::current()) {
        static_assert(!policies::at_owner,
                      "with Ids<AtOwner> a batch has all ranks' samples: say behind it how many are each rank's");
        return output(LayerBase::forward(batch, where));
    }
    /// The same of a batch that has its own memory.
    template <class Id>
    Output forward(const JaggedBatch<Id>& batch, const SourceLocation& where = SourceLocation::current()) {
        return forward(batch.view(), where);
    }
    /// With Ids<AtOwner>: the same of a batch with all ranks' samples; see LayerBase::start. Collective.
    template <class Id>
    Output forward(const JaggedView<Id>& batch, std::span<const std::int64_t> samples,
                   const SourceLocation& where = SourceLocation::current()) {
        static_assert(policies::at_owner,
                      "a batch has the samples of its own rank: give it alone, or the layer Ids<AtOwner>");
        return output(LayerBase::forward(batch, samples, where));
    }
    /// Learns from the batch of the last `forward`. Collective.
    void backward(const Gradient& gradient, const SourceLocation& where = SourceLocation::current()) {
        require_learning();
        LayerBase::backward(vectors(gradient), where);
    }

  private:
    static constexpr void require_learning() {
        static_assert(rule_learns<rule_type>,
                      "a frozen layer learns nothing: leave backward out, or give it another Optimizer<>");
    }
    static Output output(const LayerVectors& vectors) {
        if constexpr (pooled) {
            return vectors.pooled;
        } else if constexpr (sequences) {
            return vectors.sequences;
        } else {
            return vectors;
        }
    }
    static LayerVectors vectors(const Gradient& gradient) {
        LayerVectors vectors;
        if constexpr (pooled) {
            vectors.pooled = gradient;
        } else if constexpr (sequences) {
            vectors.sequences = gradient;
        } else {
            vectors = gradient;
        }
        return vectors;
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI
