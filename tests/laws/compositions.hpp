// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "laws/reference_rule.hpp"
#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/core/jagged.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/embedding/runtime/blueprint.hpp"
#include "shardwise/embedding/runtime/layer_base.hpp"
#include "shardwise/sharding/placement.hpp"
#include "shardwise/sharding/towers.hpp"

/// \file
/// Layers of any composition as a LayerBase, so that the laws are compiled once and each composition costs its
/// own code alone. Each can be made from its types and from its names.

namespace laws {

namespace sw = shardwise;

/// A batch in whichever form a case asks for.
struct Batch {
    bool wide = true;
    sw::JaggedView<std::int32_t> narrow_view;
    sw::JaggedView<std::int64_t> wide_view;
};

/// What the laws ask of a layer: flights in a queue, results and gradients as one matrix a feature, or a tower.
class QueuedLayer {
  public:
    using Matrices = std::vector<sw::MatrixView<const float>>;

    explicit QueuedLayer(std::unique_ptr<sw::LayerBase> layer) : layer_{std::move(layer)} {}
    [[nodiscard]] sw::LayerBase* operator->() const { return layer_.get(); }
    [[nodiscard]] sw::LayerBase& operator*() const { return *layer_; }

    void start(const Batch& batch, sw::BatchKind kind = sw::BatchKind::any) {
        flights_.push_back(batch.wide ? layer_->start(batch.wide_view, kind) : layer_->start(batch.narrow_view, kind));
    }
    /// The batch of a rank, of all ranks'.
    void start(const std::vector<Batch>& all, int rank, sw::BatchKind kind = sw::BatchKind::any) {
        const bool at_owner = layer_->blueprint().traits().at_owner && kind == sw::BatchKind::any;
        const Batch& mine = all.at(static_cast<std::size_t>(rank));
        if (!at_owner) return start(mine, kind);
        if (mine.wide) return start_at_owner(wide_views(all), rank);
        start_at_owner(narrow_views(all), rank);
    }
    /// Progress on every flight.
    void poll() {
        for (auto& flight : flights_)
            flight.poll();
    }
    /// Of the oldest flight that was not looked up.
    Matrices forward() {
        Matrices all;
        try {
            const sw::LayerVectors result = layer_->forward(flights_.at(looked_up_));
            all.assign(result.sequences.begin(), result.sequences.end());
            std::int64_t first = 0;
            for (std::size_t i = 0; layer_->is_pooled() && i < layer_->widths().size(); ++i) {
                all.push_back(result.pooled.columns_from(first, layer_->widths()[i]));
                first += layer_->widths()[i];
            }
        } catch (...) {
            flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(looked_up_));
            throw;
        }
        ++looked_up_;
        return all;
    }
    void backward(const Matrices& gradient) {
        auto flight = std::move(flights_.front());
        flights_.pop_front();
        --looked_up_;
        sw::LayerVectors vectors{.pooled = {}, .sequences = gradient};
        if (layer_->is_pooled())
            vectors = {
                .pooled = {gradient.at(0).data(), gradient.at(0).rows(), layer_->width(), gradient.at(0).stride()},
                .sequences = {}};
        layer_->backward(std::move(flight), vectors);
    }
    /// Ends the oldest flight, of which nothing is to be learnt.
    void end() {
        flights_.pop_front();
        --looked_up_;
    }
    /// What answering them needs, where flights have halves.
    void predict_serving(const std::vector<Batch>& batches, sw::MemoryTally& tally, int rank) {
        if (batches.at(0).wide) return layer_->blueprint().predict_serving(wide_views(batches), tally, rank);
        layer_->blueprint().predict_serving(narrow_views(batches), tally, rank);
    }
    sw::LayerCost predict(const std::vector<Batch>& batches, sw::MemoryTally& tally, sw::BatchKind kind,
                          sw::SyncTally& sync) {
        if (batches.at(0).wide) return layer_->predict_cost(wide_views(batches), &tally, kind, &sync);
        return layer_->predict_cost(narrow_views(batches), &tally, kind, &sync);
    }

  private:
    template <class Id>
    void start_at_owner(const std::vector<sw::JaggedView<Id>>& all, int rank) {
        const sw::ReplicaGroups& groups = layer_->groups();
        std::vector<sw::JaggedView<Id>> of_group;
        std::vector<std::int64_t> samples;
        for (int index = 0; index < layer_->topology().ranks(); ++index) {
            of_group.push_back(all.at(static_cast<std::size_t>(groups.rank_of(groups.group_of(rank), index))));
            samples.push_back(of_group.back().samples);
        }
        const sw::JaggedBatch<Id> given = sw::concatenated<Id>(of_group, layer_->given_features());
        flights_.push_back(layer_->start(given.view(), samples));
    }
    static std::vector<sw::JaggedView<std::int64_t>> wide_views(const std::vector<Batch>& batches) {
        std::vector<sw::JaggedView<std::int64_t>> views;
        for (const Batch& batch : batches)
            views.push_back(batch.wide_view);
        return views;
    }
    static std::vector<sw::JaggedView<std::int32_t>> narrow_views(const std::vector<Batch>& batches) {
        std::vector<sw::JaggedView<std::int32_t>> views;
        for (const Batch& batch : batches)
            views.push_back(batch.narrow_view);
        return views;
    }
    std::unique_ptr<sw::LayerBase> layer_;
    std::deque<sw::LayerFlight> flights_;
    std::size_t looked_up_ = 0;
};

/// The library's policies, and those of the laws.
[[nodiscard]] const sw::KnownPolicies& known_policies();

using BuildLayer = std::unique_ptr<sw::LayerBase> (*)(sw::CommunicatorRef, std::vector<sw::TableConfig>,
                                                      const sw::LayerOptions&, float moment_scale);
using DrawLayer = sw::LayerBlueprint (*)(const sw::Topology&, std::vector<sw::TableConfig>, const sw::Towers&,
                                         const sw::RowPlan*);

/// The axes that are types; the names are those of the policies.
struct Composition {
    std::string sharding;                ///< what the laws call it: the name of the policy, or of several
    std::vector<std::string> shardings;  ///< the policies; tables choose among several
    bool tiered = false;                 ///< they are tiers of every table
    bool crosses = true;                 ///< some of them has its home in the world
    std::string pooling;
    std::string optimizer;
    std::string forward_wire = "fp32";
    std::string backward_wire = "fp32";
    std::string order = "tree";
    std::string collective = "flat";
    std::string tower = "pass";
    std::string requests = "raw";
    std::string ids = "at_sample";
    std::shared_ptr<const sw::ModulePolicy> module;
    ReferenceRule rule;
    // null: by names alone
    BuildLayer build;
    DrawLayer draw;

    /// \param moment_scale  0: as many as groups
    [[nodiscard]] sw::LayerNames names(float moment_scale = 0.0F) const {
        const bool scaled = rule.scales && moment_scale > 0.0F;
        return {.shardings = shardings,
                .tiered = tiered,
                .collective = collective,
                .optimizer = optimizer,
                .pooling = pooling,
                .requests = requests,
                .ids = ids,
                .order = order,
                .forward_wire = forward_wire,
                .backward_wire = backward_wire,
                .rule = nullptr,
                .moment_scale = scaled ? std::optional{moment_scale} : std::nullopt,
                .module = module};
    }
    [[nodiscard]] QueuedLayer make(sw::CommunicatorRef comm, std::vector<sw::TableConfig> tables, float learning_rate,
                                   std::uint64_t seed, const sw::Towers& towers = {}, bool by_names = false,
                                   const sw::RowPlan* rows = nullptr, const sw::GroupOptions& groups = {},
                                   float moment_scale = 0.0F) const {
        const sw::LayerOptions options{.learning_rate = {.base = learning_rate},
                                       .seed = seed,
                                       .towers = towers,
                                       .groups = groups,
                                       .rows = rows,
                                       .memory = nullptr,
                                       .tracer = nullptr};
        return make(comm, std::move(tables), options, by_names, moment_scale);
    }
    [[nodiscard]] QueuedLayer make(sw::CommunicatorRef comm, std::vector<sw::TableConfig> tables,
                                   const sw::LayerOptions& options, bool by_names, float moment_scale = 0.0F) const {
        tables = as_declared(std::move(tables));
        return QueuedLayer{by_names || build == nullptr
                               ? sw::make_layer(comm, std::move(tables), names(moment_scale), options, known_policies())
                               : build(comm, std::move(tables), options, moment_scale)};
    }
    /// Tables choose among several policies alone.
    [[nodiscard]] std::vector<sw::TableConfig> as_declared(std::vector<sw::TableConfig> tables) const {
        if (shardings.size() == 1 || tiered)
            for (sw::TableConfig& table : tables)
                table.sharding.clear();
        return tables;
    }
    [[nodiscard]] bool is_coalesced() const { return requests == "coalesced"; }
    [[nodiscard]] bool has_modules() const { return tower != "pass"; }
    [[nodiscard]] std::string name() const {
        return sharding + "/" + pooling + "/" + optimizer + "/" + forward_wire + "-" + backward_wire + "/" + order +
               (collective == "flat" ? "" : "/" + collective) + (tower == "pass" ? "" : "/" + tower) +
               (ids == "at_sample" ? "" : "/" + ids) +
               (is_coalesced() ? "/coalesced" + std::string{build == nullptr ? "" : " by types"} : "");
    }
};

/// What a composition's types say, as constants: one costs little more than the layer that it makes.
struct CompositionConstants {
    const char* sharding;
    std::vector<std::string> (*shardings)();
    bool tiered;
    bool crosses;
    const char* pooling;
    const char* optimizer;
    const char* forward_wire;
    const char* backward_wire;
    const char* order;
    const char* collective;
    const char* tower;
    const char* requests;
    const char* ids;
    std::shared_ptr<const sw::ModulePolicy> (*module)();
    BuildLayer build;
    DrawLayer draw;
};
[[nodiscard]] Composition make_composition(const CompositionConstants& constants);

/// Every composition that the laws run over.
[[nodiscard]] std::vector<Composition> all_compositions();

}  // namespace laws
