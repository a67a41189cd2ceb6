// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/digest.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/jagged.hpp"
#include "shardwise/embedding/batch_view.hpp"
#include "shardwise/embedding/check_ids.hpp"
#include "shardwise/embedding/layer_cost.hpp"
#include "shardwise/embedding/layer_towers.hpp"
#include "shardwise/embedding/layer_traits.hpp"
#include "shardwise/embedding/memory.hpp"
#include "shardwise/plan/memory.hpp"
#include "shardwise/sharding/placement.hpp"
#include "shardwise/sharding/towers.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// A layer on paper: where its tables live and what its steps move, without a communicator or a table.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// The features of a layer, in its order, and what it returns.
struct LayerFeatures {
    std::vector<std::string> names;
    std::vector<int> dims;  ///< of each result: one a feature, or with modules one a tower
    int width = 0;          ///< sum of dims
    bool pooled = true;

    /// Elements of the result of a batch.
    [[nodiscard]] std::int64_t output_elements(const BatchView& batch) const {
        if (pooled) return batch.samples() * width;
        std::int64_t elements = 0;
        for (std::size_t f = 0; f < dims.size(); ++f)
            elements += batch.values(static_cast<int>(f)) * dims[f];
        return elements;
    }
};

}  // namespace detail

/// All of a layer that follows from its policies, tables and towers on a topology: a pure function, the same on all
/// ranks, and on any machine. EmbeddingLayer::blueprint makes one; its tables take no memory, so that it may be of a
/// cluster that is not there.
class LayerBlueprint {
  public:
    /// \param towers  LayerOptions::towers
    /// \throws BadInput for a topology and tables that make no sense or are of more than 2^62 bytes together, and
    /// constants of a module that do not fit
    LayerBlueprint(const Topology& topology, std::vector<TableConfig> tables, LayerTraits traits, Towers towers = {})
        : topology_{Topology::checked(topology)}, tables_{std::move(tables)}, traits_{std::move(traits)} {
        name_features();
        check_sizes();
        if (traits_.hierarchical && towers.empty() && !spans_towers())
            towers = deal_tables(tables_, topology_.towers());
        std::vector<int> tower_of;  // (table)
        if (!towers.empty()) {
            topology_ = with_towers(topology_, static_cast<int>(towers.size()));
            tower_of = tower_of_tables(tables_, towers);
        }
        for (const ShardingMaps& maps : traits_.shardings)
            placements_.push_back(maps.place(topology_, tables_, tables_of(maps.name), tower_of));
        if (!tower_of.empty() && std::all_of(placements_.begin(), placements_.end(),
                                             [](const Placement& placement) { return placement.replicated; }))
            throw BadInput{
                "towers for a layer whose tables are all on every rank: they place nothing; leave them away"};
        if (has_modules()) {
            towers_ = shape_towers(traits_.module, topology_, tables_, tower_of);
            features_.dims = towers_.outputs;
            features_.width = std::accumulate(towers_.outputs.begin(), towers_.outputs.end(), 0);
        }
        take_digest(towers);
    }

    /// With the layer's towers.
    [[nodiscard]] const Topology& topology() const noexcept { return topology_; }
    [[nodiscard]] const std::vector<TableConfig>& tables() const noexcept { return tables_; }
    [[nodiscard]] const LayerTraits& traits() const noexcept { return traits_; }
    [[nodiscard]] const detail::LayerFeatures& features() const noexcept { return features_; }
    /// (branch): one a sharding policy.
    [[nodiscard]] const std::vector<Placement>& placements() const noexcept { return placements_; }
    /// Of a layer with modules, none of them made; of others, none.
    [[nodiscard]] const LayerTowers& towers() const noexcept { return towers_; }
    [[nodiscard]] bool has_modules() const noexcept { return traits_.module.make != nullptr; }
    /// Of all that ranks have to agree on here.
    [[nodiscard]] const Digest& digest() const noexcept { return traits_.program.digest; }
    /// Names of the sharding policies: of the branches of a Mixed layer, as describe() takes them.
    [[nodiscard]] std::vector<std::string> branches() const {
        std::vector<std::string> names;
        for (const ShardingMaps& maps : traits_.shardings)
            names.push_back(maps.name);
        return names;
    }

    /// What a training step on these batches, one a rank, moves. With a tally, adds what the step's buffers need on
    /// `rank`: one tally a flight that is under way at a time, over all batches that it carries, says what
    /// memory().dynamic_bytes() grows to.
    /// \throws BadInput when a batch does not fit the layer, or there is no such rank
    template <class Id>
    [[nodiscard]] LayerCost predict_cost(const std::vector<JaggedView<Id>>& batches, MemoryTally* tally = nullptr,
                                         int rank = 0) const {
        if (batches.size() != static_cast<std::size_t>(topology().ranks()))
            throw BadInput{"predict_cost is given " + std::to_string(batches.size()) + " batches for " +
                           std::to_string(topology().ranks()) + " ranks: give one a rank"};
        check_rank(rank);
        std::vector<BatchView> bound(batches.size());
        for (std::size_t i = 0; i < batches.size(); ++i)
            bound[i].bind(batches[i], features_.names);
        return predict_bound(bound, tally, rank);
    }

    /// Bytes of tables, moments and modules on a rank. \throws BadInput when there is no such rank
    [[nodiscard]] std::int64_t static_bytes(int rank) const {
        check_rank(rank);
        std::int64_t bytes = 0;
        for (const Placement& placement : placements_)
            bytes += shardwise::static_bytes(placement, rank, traits_.element_slots, traits_.row_slots);
        if (has_modules())
            bytes += traits_.module.static_bytes(towers_.config,
                                                 towers_.shapes[static_cast<std::size_t>(topology_.tower_of(rank))]);
        return bytes;
    }

  private:
    /// Bytes are counted as std::int64_t, and buffers take up to an eighth more than was asked for: tables of no more
    /// than 2^62 bytes together leave room for all sums. No rank holds more of a table than all of it.
    void check_sizes() const {
        constexpr double most = 0x1p62;
        double bytes = 0;
        for (const TableConfig& table : tables_) {
            if (table.rows < 1 || table.dim < 1) continue;  // refused where it is placed
            bytes +=
                4.0 * static_cast<double>(table.rows) * (table.dim * (1.0 + traits_.element_slots) + traits_.row_slots);
            if (bytes > most)
                throw BadInput{"table '" + table.name + "', of " + std::to_string(table.rows) + " rows and dimension " +
                               std::to_string(table.dim) + ", brings the tables and moments of the layer to " +
                               whole(bytes) + " bytes, and a layer has at most " + whole(most) +
                               ": give smaller tables"};
        }
    }
    [[nodiscard]] static std::string whole(double number) {
        const std::string digits = std::to_string(number);
        return digits.substr(0, digits.find('.'));
    }
    void name_features() {
        features_.pooled = traits_.pooled;
        std::int64_t width = 0;
        for (std::size_t t = 0; t < tables_.size(); ++t) {
            const TableConfig& table = tables_[t];
            if (table.name.empty()) throw BadInput{"table " + std::to_string(t) + " has no name: give every table one"};
            for (std::size_t other = 0; other < t; ++other)
                if (tables_[other].name == table.name)
                    throw BadInput{"table '" + table.name + "' stands twice: give every table one name"};
            for (const std::string& feature : features_of(table)) {
                if (std::find(features_.names.begin(), features_.names.end(), feature) != features_.names.end())
                    throw BadInput{"feature '" + feature + "' stands twice in the tables: give every feature one name"};
                features_.names.push_back(feature);
                features_.dims.push_back(table.dim);
                width += table.dim;
                if (width > std::numeric_limits<int>::max())
                    throw BadInput{"the features up to '" + feature + "' have " + std::to_string(width) +
                                   " columns together, and a layer's results have at most " +
                                   std::to_string(std::numeric_limits<int>::max()) + ": give smaller dimensions"};
            }
        }
        features_.width = static_cast<int>(width);
    }
    void check_rank(int rank) const {
        if (rank < 0 || rank >= topology_.ranks())
            throw BadInput{"rank " + std::to_string(rank) + " of " + std::to_string(topology_.ranks()) +
                           ": ranks are numbered from 0"};
    }
    /// Blocks that are placed by load go wherever the least is looked up, unless a module needs whole features.
    [[nodiscard]] bool spans_towers() const noexcept {
        return !has_modules() && std::all_of(traits_.shardings.begin(), traits_.shardings.end(),
                                             [](const ShardingMaps& maps) { return maps.by_load; });
    }
    /// The numbers of the tables that the policy `sharding` places. \throws BadInput for a name that is no policy here
    [[nodiscard]] std::vector<int> tables_of(const std::string& sharding) const {
        const std::vector<std::string> known = branches();
        if (std::count(known.begin(), known.end(), sharding) > 1)
            throw BadInput{"two policies of this Mixed layer are called '" + sharding +
                           "', and tables choose by name: give each policy a name of its own"};
        std::vector<int> numbers;
        for (std::size_t t = 0; t < tables_.size(); ++t) {
            const std::string& asked = tables_[t].sharding;
            const bool any = asked.empty() && !traits_.mixed;
            if (!any && std::find(known.begin(), known.end(), asked) == known.end()) {
                std::string text = "table '" + tables_[t].name + "' asks for sharding '" + asked + "'; this layer has ";
                for (const std::string& name : known)
                    text += name + (name == known.back() ? "" : ", ");
                if (!traits_.mixed) text += " alone: leave it empty, or use Mixed";
                throw BadInput{text};
            }
            if (any || asked == sharding) numbers.push_back(static_cast<int>(t));
        }
        return numbers;
    }
    void take_digest(const Towers& towers) {
        Digest& digest = traits_.program.digest;
        for (const TableConfig& table : tables_) {
            digest.add(table.name).add(table.rows).add(std::int64_t{table.dim}).add(table.sharding).add(table.load);
            for (const std::string& feature : features_of(table))
                digest.add(feature);
        }
        for (const auto& tower : towers)
            for (const std::string& feature : tower)
                digest.add(std::int64_t{&tower - towers.data()}).add(feature);
        digest.add(std::int64_t{topology_.hosts_per_tower}).add(traits_.module.digest);
        digest.add(traits_.optimizer).add(traits_.rule_digest);
        for (const Placement& placement : placements_)  // loads are numbers that a rank may have counted by itself
            for (const TablePlacement& table : placement.tables)
                for (const ShardPlacement& shard : table.shards)
                    digest.add(std::int64_t{shard.owner});
    }
    [[nodiscard]] LayerCost predict_bound(const std::vector<BatchView>& batches, MemoryTally* tally, int rank) const {
        for (const BatchView& batch : batches)
            check_ids(placements_, batch, traits_.pooled);
        if (tally != nullptr) tally->begin_batch();
        LayerCost cost = detail::predict_layer(traits_.program, topology_, placements_, traits_.mixed, towers_, batches,
                                               tally, rank);
        if (tally != nullptr) {
            tally_messages(cost.segments, topology_, rank, *tally);
            tally->need(4 * features_.output_elements(batches[static_cast<std::size_t>(rank)]));
        }
        return cost;
    }

    Topology topology_;
    std::vector<TableConfig> tables_;
    LayerTraits traits_;
    detail::LayerFeatures features_;
    LayerTowers towers_;
    std::vector<Placement> placements_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
