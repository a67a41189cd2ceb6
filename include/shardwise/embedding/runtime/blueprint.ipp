// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <limits>
#include <utility>

#include "shardwise/core/at.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/lanes/check_ids.hpp"
#include "shardwise/embedding/runtime/blueprint.hpp"
#include "shardwise/embedding/tables/store.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE LayerBlueprint::LayerBlueprint(const Topology& topology, std::vector<TableConfig> tables,
                                                LayerTraits traits, const LayerOptions& options,
                                                std::pmr::memory_resource& memory)
    : traits_{std::move(traits)},
      groups_{Topology::checked(topology), merged(traits_.groups, options.groups), traits_.rule->learns()},
      topology_{groups_.ranks.inside_group()},
      tables_{std::move(tables)},
      features_{tables_, traits_.pools},
      bound_{traits_.bound, options.bound, features_.names.size(), traits_.rule->learns(), traits_.at_owner},
      clip_norm_{options.clip_norm} {
    traits_.rule = for_groups(traits_.rule, groups_.count());
    settle_tables(options);
    Towers towers = options.towers;
    check_sizes();
    inner_tables_ = tables_;
    inner_features_ = features_;
    if (traits_.coalesced) coalesce();
    map_rows(options.rows, memory);
    check_towers(towers);
    if (traits_.hierarchical && towers.empty() && !spans_towers())
        towers = deal_tables(tables_, topology_.towers(), traits_.mixed);
    std::vector<int> tower_of;  // (table)
    if (!towers.empty()) {
        topology_ = with_towers(topology_, static_cast<int>(towers.size()));
        tower_of = tower_of_tables(tables_, towers);
    }
    place(tower_of, options.room);
    check_clipping();
    want_squares(options);
    if (has_hot_batches()) {
        hot_row_tiers_ = row_tiers_;
        hot_row_tiers_.tiers = 1;
        hot_features_by_plan_ = features_by_plan_;
        hot_features_by_plan_.features.resize(features_by_plan_.features.size() / traits_.shardings.size());
    }
    if (!tower_of.empty() &&
        std::none_of(traits_.shardings.begin(), traits_.shardings.end(), [](const auto& s) { return s.in_world; }))
        throw BadInput{
            "towers for a layer whose tables are all on every rank, or in every group of ranks: they place "
            "nothing; leave them out"};
    if (has_modules()) {
        towers_ = shape_towers(traits_.module, topology_, tables_, tower_of);
        features_.become_towers(towers_.outputs);
    }
    take_digest(towers, options.rows);
    room_ = options.room;
    if (room_ != 0) digest_.add("room").add(room_);
}

/// Bytes are counted as std::int64_t, and buffers take up to an eighth more than was asked for: tables of no more than
/// 2^62 bytes together leave room for all sums. No rank holds more of a table than all of it.
SHARDWISE_INLINE void LayerBlueprint::check_sizes() const {
    constexpr double most = 0x1p62;
    const auto whole = [](double number) {
        const std::string digits = std::to_string(number);
        return digits.substr(0, digits.find('.'));
    };
    double bytes = 0;
    for (const TableConfig& table : tables_) {
        if (table.rows < 1 || table.dim < 1) continue;  // refused where it is placed
        bytes += 4.0 * static_cast<double>(table.rows) *
                 (table.dim * (1.0 + traits_.rule->element_slots()) + traits_.rule->row_slots());
        if (bytes > most)
            throw BadInput{concat({"table '", table.name, "', of ", table.rows, " rows and dimension ", table.dim,
                                   ", brings the tables and moments of the layer to ", whole(bytes),
                                   " bytes, and a layer has at most ", whole(most), ": give smaller tables"})};
    }
}

/// Plans are of lists of distinct ids, one a table.
SHARDWISE_INLINE void LayerBlueprint::coalesce() {
    coalesced_tables_.counted = traits_.tiered;
    coalesced_tables_.words = traits_.wide_partial_sums() ? 2 : 1;
    for (TableConfig& table : inner_tables_) {
        CoalescedTables::Table& one = coalesced_tables_.tables.emplace_back(
            CoalescedTables::Table{.name = table.name,
                                   .rows = table.rows,
                                   .dim = table.dim,
                                   .first = static_cast<int>(coalesced_tables_.features.size())});
        for (const std::string& feature : features_of(table)) {
            const LayerFeatures::Result& result = features_.results[coalesced_tables_.features.size()];
            coalesced_tables_.features.push_back({.name = feature, .pooled = result.pooled, .mean = result.mean});
            coalesced_tables_.some_pooled |= result.pooled;
        }
        one.end = static_cast<int>(coalesced_tables_.features.size());
        coalesced_tables_.wide |= table.rows > std::numeric_limits<std::int32_t>::max();
        table.features.clear();
        table.pooling.clear();
    }
    inner_features_ = LayerFeatures{inner_tables_, Pools::none};
}

/// The tiers of all tables' rows. \throws BadInput for a plan of other tables or tiers
SHARDWISE_INLINE void LayerBlueprint::map_rows(const RowPlan* rows, std::pmr::memory_resource& memory) {
    if (!traits_.tiered) {
        if (rows != nullptr)
            throw BadInput{"a row plan for a layer without tiers: give the layer Sharding<Tiered<>>, or no plan"};
        return;
    }
    const auto list = [](const auto& all, auto name) {
        std::string text;
        for (const auto& one : all)
            text += (text.empty() ? "" : ", ") + name(one);
        return text;
    };
    const std::string mine = list(traits_.shardings, [](const ShardingTraits& sharding) { return sharding.name; });
    if (rows != nullptr) {
        const std::string theirs = list(rows->tiers, [](const std::string& name) { return name; });
        if (theirs != mine)
            throw BadInput{concat({"the row plan has tiers ", theirs, ", and the layer has ", mine,
                                   ": give a plan of the layer's tiers, in their order"})};
        shardwise::check(*rows);
        require_tables(*rows, tables_);
    }
    row_tiers_.tiers = static_cast<int>(traits_.shardings.size());
    for (const ShardingTraits& sharding : traits_.shardings)
        row_tiers_.names.push_back(sharding.name);
    const Codec& wire = traits_.wires.backward;
    const std::int64_t partial = traits_.wide_partial_sums() ? 8 : wire.bytes;
    for (const TableConfig& table : inner_tables_) {
        if (table.rows < 1)
            throw BadInput{concat({"table '", table.name, "' has ", table.rows, " rows: give it at least one"})};
        const TableRowPlan plan =
            rows != nullptr ? rows->of(table.name) : all_in_last_tier(table.name, table.rows, traits_.shardings.size());
        row_maps_.push_back(std::make_shared<RowMap>(plan, memory));
        auto& dense = dense_sums_.emplace_back();
        for (std::size_t tier = 0; tier < plan.tiers.size(); ++tier)
            dense.push_back(dense_sums(plan, tier, {.partial = table.dim * partial, .whole = table.dim * wire.bytes}));
        row_tiers_.wide |= table.rows > std::numeric_limits<std::int32_t>::max();
        for (const std::string& feature : features_of(table)) {
            const LayerFeatures::Result& result = inner_features_.results[row_tiers_.features.size()];
            row_tiers_.features.push_back({.name = feature,
                                           .table = table.name,
                                           .map = row_maps_.back(),
                                           .dim = table.dim,
                                           .pooled = result.pooled,
                                           .mean = result.mean});
        }
    }
}

SHARDWISE_INLINE void LayerBlueprint::place(const std::vector<int>& tower_of, std::int64_t room) {
    if (room < 0)
        throw BadInput{concat({"a room of ", room, " bytes a rank: give a positive number, or 0 for enough"})};
    if (room > 0 &&
        std::none_of(traits_.shardings.begin(), traits_.shardings.end(), [](const auto& s) { return s.together; }))
        throw BadInput{
            "a room of ranks where no table is placed by load: it decides nothing; leave it out, or place tables by "
            "load, as Col<4> does"};
    const PlacementRoom of_rank{.bytes = static_cast<double>(room),
                                .element_bytes = 4.0 * (1 + traits_.rule->element_slots()),
                                .row_bytes = 4.0 * traits_.rule->row_slots()};
    const Pools pools = traits_.coalesced ? Pools::none : traits_.pools;
    const bool by_table = pools == Pools::by_table;
    const std::vector<bool> kinds = by_table ? std::vector<bool>{true, false} : std::vector<bool>{pools != Pools::none};
    for (std::size_t i = 0; i < traits_.shardings.size(); ++i) {
        const ShardingTraits& sharding = traits_.shardings[i];
        const TierOfTables tier{.rows = traits_.tiered ? &row_maps_ : nullptr, .tier = static_cast<int>(i)};
        for (const bool pooled : kinds) {
            Part& part = parts_.emplace_back();
            part.name = sharding.name;
            if (by_table) part.name += pooled ? ", pooled" : ", sequences";
            part.placement =
                place_tables(sharding, topology_, inner_tables_, tables_of(sharding, pooled), tower_of, tier, of_rank);
            for (TablePlacement& table : part.placement.tables)
                if (traits_.tiered) table.dense = at(dense_sums_, table.table)[i];
            const bool at_home = part.placement.home.size == 1;
            part.pooling = {
                .pooled = pooled,
                .beside_pooled = by_table,
                .every_bag = at_home || traits_.at_owner || (pooled && traits_.over_relays(sharding, pooled)),
                .distinct = traits_.coalesced,
                .words = coalesced_tables_.words,
                .mean = {}};
            auto& features = features_by_plan_.features.emplace_back();
            for (const FeaturePlacement& feature : part.placement.features) {
                features.push_back(feature.feature);
                part.pooling.mean.push_back(!traits_.tiered && at(inner_features_.results, feature.feature).mean ? 1
                                                                                                                 : 0);
            }
        }
    }
}

/// Blocks that are placed together go wherever the least is looked up, unless a module needs whole features.
SHARDWISE_INLINE bool LayerBlueprint::spans_towers() const {
    return !has_modules() && std::all_of(traits_.shardings.begin(), traits_.shardings.end(), [](const auto& sharding) {
        return sharding.together && sharding.splits == Splits::columns;
    });
}

/// The numbers of the tables that a policy places. \throws BadInput for a name that is no policy here
SHARDWISE_INLINE std::vector<int> LayerBlueprint::tables_of(const ShardingTraits& sharding, bool pooled) const {
    const auto named = [&](const std::string& name) {
        return std::count_if(traits_.shardings.begin(), traits_.shardings.end(),
                             [&](const ShardingTraits& other) { return other.name == name; });
    };
    if (named(sharding.name) > 1)
        throw BadInput{concat({"two policies of this Mixed layer are called '", sharding.name,
                               "', and tables choose by name: give each policy a name of its own"})};
    std::vector<int> numbers;
    std::size_t feature = 0;
    for (std::size_t t = 0; t < tables_.size(); ++t) {
        const bool is_pooled = inner_features_.results[feature].pooled;
        feature += features_of(inner_tables_[t]).size();
        const std::string& asked = tables_[t].sharding;
        const bool any = asked.empty() && !traits_.mixed;
        if (traits_.tiered && !any)
            throw BadInput{
                concat({"table '", tables_[t].name, "' asks for sharding '", asked,
                        "', and every table of a Tiered layer is in all tiers: leave it empty, and give a row plan"})};
        if (!any && named(asked) == 0) {
            std::string text =
                concat({"table '", tables_[t].name, "' asks for sharding '", asked, "'; this layer has "});
            for (const ShardingTraits& known : traits_.shardings)
                text += known.name + (&known == &traits_.shardings.back() ? "" : ", ");
            if (!traits_.mixed) text += " alone: leave it empty, or use Mixed";
            throw BadInput{text};
        }
        if ((any || asked == sharding.name) && is_pooled == pooled) numbers.push_back(static_cast<int>(t));
    }
    return numbers;
}

SHARDWISE_INLINE std::vector<int> LayerBlueprint::given_features(int rank) const {
    check_rank(rank);
    const int index = groups_.ranks.index_of(rank);
    std::vector<int> given;
    for (const Part& part : parts_)
        for (std::size_t f = 0; f < part.placement.features.size(); ++f)
            if (traits_.tiered || !traits_.at_owner || part.placement.has_part(index, static_cast<int>(f)))
                given.push_back(part.placement.features[f].feature);
    std::sort(given.begin(), given.end());
    given.erase(std::unique(given.begin(), given.end()), given.end());
    return given;
}

SHARDWISE_INLINE std::vector<std::string> LayerBlueprint::branches() const {
    std::vector<std::string> names;
    for (const Part& part : parts_)
        names.push_back(part.name);
    return names;
}

SHARDWISE_INLINE void LayerBlueprint::take_digest(const Towers& towers, const RowPlan* rows) {
    digest_ = traits_.program.digest;
    for (const TableConfig& table : tables_) {
        digest_.add(table.name).add(table.rows).add(std::int64_t{table.dim}).add(table.sharding).add(table.load);
        digest_.add(table.pooling);
        for (const std::string& feature : features_of(table))
            digest_.add(feature);
    }
    for (const TableSettings& settings : settings_)
        settings.add_to(digest_);
    digest_.add(clip_norm_);
    for (const auto& tower : towers)
        for (const std::string& feature : tower)
            for (Digest* digest : {&digest_, &towers_digest_})
                digest->add(std::int64_t{&tower - towers.data()}).add(feature);
    digest_.add(std::int64_t{topology_.hosts_per_tower}).add(has_modules() ? traits_.module->digest() : 0);
    groups_.add_to(digest_);
    bound_.add_to(digest_);
    digest_.add(name_of(traits_.pools)).add(traits_.rule->name()).add(traits_.rule->digest());
    if (rows != nullptr) rows->add_to(digest_);
    if (rows != nullptr) rows->add_to(rows_digest_);
    for (const Part& part : parts_)  // loads are numbers that a rank may have counted by itself
        for (const TablePlacement& table : part.placement.tables) {
            for (Digest* digest : {&digest_, &placed_digest_}) {
                if (traits_.tiered)
                    digest->add(std::int64_t{table.dense.rank + 2 * table.dense.host + 4 * table.dense.world});
                for (const ShardPlacement& shard : table.shards)
                    digest->add(std::int64_t{shard.owner});
            }
        }
}

/// Towers are of the hosts of a group.
SHARDWISE_INLINE void LayerBlueprint::check_towers(const Towers& towers) const {
    if (groups_.count() == 1) return;
    const Topology& all = world();
    const int hosts = topology_.hosts;
    const auto refuse = [&](const std::string& what) {
        throw BadInput{concat({what, " the ", hosts, hosts == 1 ? " host" : " hosts", " of each of ", groups_.count(),
                               " groups: a group has towers of its own; give a number that divides its hosts"})};
    };
    if (!towers.empty() && hosts % static_cast<int>(towers.size()) != 0)
        refuse(concat({towers.size(), " towers do not divide"}));
    if (traits_.hierarchical && towers.empty() && hosts % all.hosts_per_tower != 0)
        refuse(concat({"towers of ", all.hosts_per_tower, " hosts do not divide"}));
}

SHARDWISE_INLINE void LayerBlueprint::check_batches(std::size_t count) const {
    if (count != static_cast<std::size_t>(world().ranks()))
        throw BadInput{
            concat({"predict_cost is given ", count, " batches for ", world().ranks(), " ranks: give one a rank"})};
}

SHARDWISE_INLINE void LayerBlueprint::check_rank(int rank) const {
    if (rank < 0 || rank >= world().ranks())
        throw BadInput{concat({"rank ", rank, " of ", world().ranks(), ": ranks are numbered from 0"})};
}

SHARDWISE_INLINE void LayerBlueprint::check(const steps::BatchView& batch) const {
    if (traits_.coalesced) {
        const std::string wrong = steps::first_wrong_request(batch, coalesced_tables_);
        if (!wrong.empty()) throw BadInput{wrong};
        return;
    }
    for (const Part& part : parts_) {
        const bool sequences = !part.pooling.pooled && batch.weighted();
        if (sequences && !part.pooling.beside_pooled) throw BadInput{steps::weights_of_a_sequence};
        for (const FeaturePlacement& feature : part.placement.features) {
            std::string wrong;
            if (sequences) wrong = steps::first_weighed_id(batch, feature.feature, feature.name);
            if (wrong.empty())
                wrong = steps::first_wrong_id(batch, feature.feature, feature.name,
                                              at(part.placement.tables, feature.table).name,
                                              at(part.placement.tables, feature.table).rows);
            if (!wrong.empty()) throw BadInput{wrong};
        }
    }
}

SHARDWISE_INLINE std::int64_t LayerBlueprint::static_bytes(int rank) const {
    return static_bytes(rank, MemoryPart::tables) + static_bytes(rank, MemoryPart::moments) +
           static_bytes(rank, MemoryPart::marks);
}

SHARDWISE_INLINE std::int64_t LayerBlueprint::static_bytes(int rank, MemoryPart part) const {
    check_rank(rank);
    const int index = groups_.ranks.index_of(rank);
    std::int64_t bytes = 0;
    for (const Part& one : parts_) {
        const std::int64_t weights = shardwise::static_bytes(one.placement, index, 0, 0);
        if (part == MemoryPart::tables) bytes += weights;
        if (part == MemoryPart::moments)
            bytes += shardwise::static_bytes(one.placement, index, traits_.rule->element_slots(),
                                             traits_.rule->row_slots()) -
                     weights;
        if (part == MemoryPart::marks && groups_.keeps_marks()) bytes += TouchedMarks::bytes({one.placement, index});
    }
    if (part != MemoryPart::tables) return bytes;
    bytes += row_map_bytes();
    if (has_modules()) bytes += traits_.module->static_bytes(at(towers_.shapes, topology_.tower_of(index)));
    return bytes;
}

SHARDWISE_INLINE std::int64_t LayerBlueprint::row_map_bytes() const noexcept {
    std::int64_t bytes = 0;
    for (const auto& map : row_maps_)
        bytes += map->bytes();
    return bytes;
}

SHARDWISE_INLINE std::vector<std::int64_t> LayerBlueprint::by_part(std::span<const std::int64_t> by_post,
                                                                   BatchKind kind) const {
    const Program& program = traits_.program_of(kind);
    std::vector<std::int64_t> sums;
    for (std::size_t part = 0; part < parts_.size(); ++part)
        sums.push_back(program.sum_of(path_of(part), by_post));
    return sums;
}

}  // namespace shardwise::inline SHARDWISE_ABI
