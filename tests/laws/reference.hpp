// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "laws/compositions.hpp"
#include "laws/mix.hpp"
#include "laws/reference_rule.hpp"
#include "laws/scenario.hpp"
#include "shardwise/embedding/tables/initial_weight.hpp"

/// \file
/// The reference: one process that owns everything, and sums along the tree. Plain loops; it shares with the library
/// the initial weights alone.

namespace laws {

inline float round_bf16(float x) {
    if (std::isnan(x) || std::isinf(x)) return x;
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const float down = std::bit_cast<float>(bits & 0xffff0000U);
    const float up = std::bit_cast<float>((bits & 0xffff0000U) + 0x10000U);
    const std::uint32_t rest = bits & 0xffffU;
    if (rest == 0x8000U) return (bits & 0x10000U) != 0 ? up : down;
    return rest > 0x8000U ? up : down;
}
/// What a wire makes of a number.
enum class ReferenceWire { fp32, bf16 };
inline float on_wire(ReferenceWire wire, float x) {
    return wire == ReferenceWire::bf16 ? round_bf16(x) : x;
}

/// What places a row, as far as the reference tells them apart: `apart` is any policy that splits no rows.
enum class ReferencePolicy { row, flex, dp, apart };
inline ReferencePolicy reference_policy(const std::string& name) {
    if (name == "row") return ReferencePolicy::row;
    if (name == "flex") return ReferencePolicy::flex;
    return name == "dp" ? ReferencePolicy::dp : ReferencePolicy::apart;
}

struct ReferenceTable {
    sw::TableConfig config;
    ReferencePolicy policy = ReferencePolicy::apart;  // in tiered layers that of each tier counts
    int index = 0;                                    // among the tables of its policy in its tower
    int number = 0;                                   // in the layer
    int first_rank = 0;
    int ranks = 1;                            // that it is placed on
    std::vector<int> tier_of = {};            // (row), in tiered layers
    std::vector<std::int64_t> place_of = {};  // (row), there: its number in its tier
    std::vector<Vector> weights;
    std::vector<std::vector<Vector>> element_state;  // (slot, row)
    std::vector<Vector> row_state;                   // (row)
};

/// Terms of one row's gradient, in the order in which they are given.
struct Term {
    int source;
    float weight;
    Vector gradient;
};

class Reference {
  public:
    Reference(const Composition& composition, const Scenario& scenario, const sw::Topology& topology, float rate,
              std::uint64_t seed, int towers = 0, float moment_scale = 1.0F)
        : c_{composition},
          s_{scenario},
          t_{topology},
          rate_{rate},
          moment_scale_{moment_scale},
          forward_wire_{wire(c_.forward_wire)},
          backward_wire_{wire(c_.backward_wire)},
          sequences_{c_.pooling == "none"},
          mean_{c_.pooling == "mean"},
          by_sample_{c_.order == "sample"},
          wide_tree_{c_.order == "wide_tree"},
          two_stage_{c_.collective == "two_stage"},
          coalesced_{c_.is_coalesced()},
          sums_at_relays_{c_.collective == "hierarchical" && !c_.has_modules()} {
        for (const std::string& name : c_.shardings)
            tiers_.push_back(reference_policy(name));
        if (towers == 0) towers = 1;
        for (int tower = 0; c_.has_modules() && tower < towers; ++tower) {
            Module& module = modules_.emplace_back();
            module.inputs = s_.columns_of(tower);
            module.outputs = 1 + module.inputs / 2;
            for (int i = 0; i < module.inputs * module.outputs; ++i)
                module.weights.push_back(Mix::initial(3, tower, seed, i));
        }
        std::map<std::pair<std::string, int>, int> count;
        for (std::size_t i = 0; i < s_.tables.size(); ++i) {
            ReferenceTable table{.config = s_.tables[i], .weights = {}, .element_state = {}, .row_state = {}};
            const std::string policy = c_.tiered ? "row" : table.config.sharding;
            table.policy = reference_policy(policy);
            const int tower = towers == 1 || !crosses(table.policy) ? 0 : s_.tower_of[i];
            table.index = count[{policy, tower}]++;
            table.number = static_cast<int>(i);
            if (c_.tiered) put_in_tiers(table);
            table.ranks = t_.ranks() / towers;
            table.first_rank = tower * table.ranks;
            const auto rows = static_cast<std::size_t>(table.config.rows);
            const float bound = 1.0F / std::sqrt(static_cast<float>(table.config.rows));
            for (std::size_t r = 0; r < rows; ++r) {
                table.weights.emplace_back();
                for (int d = 0; d < table.config.dim; ++d)
                    table.weights[r].push_back(
                        starts_at_negative_zero(static_cast<std::int64_t>(r), d) ? -0.0F
                        : s_.settings[i].constant
                            ? s_.settings[i].initial
                            : sw::initial_weight(seed, static_cast<int>(i), static_cast<std::int64_t>(r), d, bound));
            }
            table.element_state.assign(
                static_cast<std::size_t>(c_.rule.element_slots),
                std::vector<Vector>(rows, Vector(static_cast<std::size_t>(table.config.dim), 0.0F)));
            table.row_state.assign(rows, Vector(static_cast<std::size_t>(c_.rule.row_slots), 0.0F));
            tables_.push_back(std::move(table));
        }
    }

    /// (feature): the rows of its result, for the batch of rank `source`; with modules, (tower).
    [[nodiscard]] std::vector<std::vector<Vector>> forward(const RankBatch& batch, int source) const {
        if (!c_.has_modules()) return look_up(batch, source);
        std::vector<std::vector<Vector>> results;
        for (std::size_t tower = 0; tower < modules_.size(); ++tower) {
            const Module& module = modules_[tower];
            results.emplace_back();
            for (const Vector& in : inputs(batch, source, static_cast<int>(tower))) {
                Vector& out = results.back().emplace_back();
                for (int o = 0; o < module.outputs; ++o) {
                    float sum = 0.0F;
                    for (int i = 0; i < module.inputs; ++i)
                        sum = std::fma(module.at(o, i), in[static_cast<std::size_t>(i)], sum);
                    out.push_back(on_wire(forward_wire_, sum));
                }
            }
        }
        return results;
    }

    /// One training step of the tables: every rank's gradient of the step's outputs. Modules know theirs then.
    /// \param to_world  what the modules' gradients are multiplied with before they are summed
    void step(const std::vector<RankBatch>& ranks, float to_world) {
        if (!c_.has_modules()) return learn(ranks);
        std::vector<RankBatch> below = ranks;  // with gradients of the features
        look_through_modules(ranks, below, to_world);
        learn(below);
    }
    /// The module of a tower learns.
    void learn_module(int tower, const Vector& gradient) {
        Module& module = modules_[static_cast<std::size_t>(tower)];
        for (std::size_t i = 0; i < module.weights.size(); ++i)
            module.weights[i] = std::fma(-rate_, gradient[i], module.weights[i]);
    }
    /// What the rank's samples, as it relays them, say about its tower's module in the last step.
    [[nodiscard]] const Vector& relay_gradient(int rank) const { return relays_[static_cast<std::size_t>(rank)]; }
    /// The sum of that over the ranks of a tower, along the tree, by the world's samples.
    [[nodiscard]] const Vector& tower_gradient(int tower) const {
        return modules_[static_cast<std::size_t>(tower)].gradient;
    }
    /// As many gradients as modules.
    [[nodiscard]] int modules() const { return static_cast<int>(modules_.size()); }
    [[nodiscard]] const std::vector<ReferenceTable>& tables() const { return tables_; }
    [[nodiscard]] std::vector<ReferenceTable>& tables() { return tables_; }

  private:
    struct Module {
        int inputs = 0;
        int outputs = 0;
        Vector weights;
        Vector gradient;
        [[nodiscard]] float at(int o, int i) const { return weights[static_cast<std::size_t>(o * inputs + i)]; }
    };

    /// (sample): the sums of a tower's features side by side.
    [[nodiscard]] std::vector<Vector> inputs(const RankBatch& batch, int source, int tower) const {
        const auto features = look_up(batch, source);
        std::vector<Vector> all(static_cast<std::size_t>(batch.samples));
        for (std::size_t f = 0; f < features.size(); ++f)
            if (s_.tower_of[static_cast<std::size_t>(s_.table_of[f])] == tower)
                for (std::size_t i = 0; i < all.size(); ++i)
                    all[i].insert(all[i].end(), features[f][i].begin(), features[f][i].end());
        return all;
    }

    /// Modules see what `ranks` say of them; `below` gets what passes through them. Source s is relayed by the rank of
    /// each tower with its index.
    void look_through_modules(const std::vector<RankBatch>& ranks, std::vector<RankBatch>& below, float to_world) {
        const int towers = static_cast<int>(modules_.size());
        const int members = t_.ranks() / towers;
        relays_.assign(static_cast<std::size_t>(t_.ranks()), {});
        int features_width = 0;
        for (std::int64_t f = 0; f < s_.features(); ++f)
            features_width += s_.dim_of(f);
        for (RankBatch& batch : below)
            batch.gradient.assign(static_cast<std::size_t>(batch.samples * features_width), 0.0F);
        int first_output = 0;
        for (int tower = 0; tower < towers; ++tower) {
            Module& module = modules_[static_cast<std::size_t>(tower)];
            for (int source = 0; source < t_.ranks(); ++source) {
                const RankBatch& batch = ranks[static_cast<std::size_t>(source)];
                Vector& relay = relays_[static_cast<std::size_t>(tower * members + source % members)];
                relay.resize(module.weights.size(), 0.0F);
                const std::vector<Vector> in = inputs(batch, source, tower);
                for (std::int64_t sample = 0; sample < batch.samples; ++sample) {
                    Vector g;
                    for (int o = 0; o < module.outputs; ++o)
                        g.push_back(
                            on_wire(backward_wire_,
                                    batch.gradient[static_cast<std::size_t>(sample * s_.width + first_output + o)]));
                    Vector through;
                    for (int i = 0; i < module.inputs; ++i) {
                        float sum = 0.0F;
                        for (int o = 0; o < module.outputs; ++o)
                            sum = std::fma(module.at(o, i), g[static_cast<std::size_t>(o)], sum);
                        through.push_back(sum);
                    }
                    for (int o = 0; o < module.outputs; ++o)
                        for (int i = 0; i < module.inputs; ++i) {
                            float& term = relay[static_cast<std::size_t>(o * module.inputs + i)];
                            term = std::fma(g[static_cast<std::size_t>(o)],
                                            in[static_cast<std::size_t>(sample)][static_cast<std::size_t>(i)], term);
                        }
                    put_through(tower, sample, features_width, through,
                                below[static_cast<std::size_t>(source)].gradient);
                }
            }
            first_output += module.outputs;
            module.gradient.assign(module.weights.size(), 0.0F);
            for (int rank = tower * members; rank < (tower + 1) * members;) {
                Vector host(module.weights.size(), 0.0F);
                for (const int here = t_.host_of(rank); rank < (tower + 1) * members && t_.host_of(rank) == here;
                     ++rank)
                    for (std::size_t i = 0; i < host.size(); ++i) {
                        const float term = to_world * relays_[static_cast<std::size_t>(rank)][i];
                        host[i] += term;
                    }
                for (std::size_t i = 0; i < host.size(); ++i)
                    module.gradient[i] += host[i];
            }
        }
    }
    /// Writes the gradient of a tower's inputs to the columns of its features.
    void put_through(int tower, std::int64_t sample, int width, const Vector& through, std::vector<float>& to) const {
        std::size_t from = 0;
        std::int64_t column = 0;
        for (std::int64_t f = 0; f < s_.features(); ++f) {
            for (int d = 0; d < s_.dim_of(f); ++d, ++column)
                if (s_.tower_of[static_cast<std::size_t>(s_.table_of[static_cast<std::size_t>(f)])] == tower)
                    to[static_cast<std::size_t>(sample * width + column)] = through[from++];
        }
    }

    /// (feature): the rows of its result, for the batch of rank `source`.
    [[nodiscard]] std::vector<std::vector<Vector>> look_up(const RankBatch& batch, int source) const {
        std::vector<std::vector<Vector>> results;
        std::size_t at = 0;
        std::size_t bag = 0;
        for (std::int64_t f = 0; f < s_.features(); ++f) {
            results.emplace_back();
            const ReferenceTable& table = table_of(f);
            for (std::int64_t i = 0; i < batch.samples; ++i) {
                const std::int32_t length = batch.lengths[bag++];
                if (sequences_) {
                    for (std::int32_t k = 0; k < length; ++k) {
                        Vector row = table.weights[static_cast<std::size_t>(batch.ids[at++])];
                        if (travels(policy_of(table, batch.ids[at - 1])))
                            for (float& x : row)
                                x = on_wire(forward_wire_, x);
                        results.back().push_back(row);
                    }
                    continue;
                }
                results.back().push_back(pool(table, batch, source, at, length));
                at += static_cast<std::size_t>(length);
            }
        }
        return results;
    }

    /// One training step of the tables: every rank's gradient of their features' sums.
    void learn(const std::vector<RankBatch>& ranks) {
        ++step_;
        std::vector<std::map<std::int64_t, std::vector<Term>>> touched(tables_.size());
        for (int rank = 0; rank < t_.ranks(); ++rank)
            collect(ranks[static_cast<std::size_t>(rank)], rank, touched);
        std::vector<std::map<std::int64_t, Vector>> gradients(tables_.size());
        long double squares = 0;
        for (std::size_t t = 0; t < tables_.size(); ++t)
            for (const auto& [row, terms] : touched[t]) {
                Vector g = sum(tables_[t], policy_of(tables_[t], row), terms);
                const float most = s_.settings[t].clip_value;
                for (float& x : g) {
                    if (most != 0.0F) x = std::max(-most, std::min(most, x));
                    squares += static_cast<long double>(x) * x;
                }
                gradients[t][row] = std::move(g);
            }
        const double norm = std::sqrt(static_cast<double>(squares));
        const double most = static_cast<double>(s_.clip_norm);
        scale_ = most != 0 ? static_cast<float>(std::min(1.0, most / (norm + 1e-6))) : 1.0F;
        for (std::size_t t = 0; t < tables_.size(); ++t)
            for (const auto& [row, g] : gradients[t])
                update(tables_[t], static_cast<std::size_t>(row), g);
    }

    [[nodiscard]] const ReferenceTable& table_of(std::int64_t feature) const {
        return tables_[static_cast<std::size_t>(s_.table_of[static_cast<std::size_t>(feature)])];
    }
    /// Whether vectors leave the rank that looks them up; and whether they may leave the host.
    [[nodiscard]] static bool travels(ReferencePolicy policy) { return policy != ReferencePolicy::dp; }
    [[nodiscard]] static bool crosses(ReferencePolicy policy) {
        return travels(policy) && policy != ReferencePolicy::flex;
    }
    [[nodiscard]] static ReferenceWire wire(const std::string& name) {
        return name == "bf16" ? ReferenceWire::bf16 : ReferenceWire::fp32;
    }
    /// What places a row.
    [[nodiscard]] ReferencePolicy policy_of(const ReferenceTable& table, std::int64_t row) const {
        return c_.tiered ? tiers_[static_cast<std::size_t>(table.tier_of[static_cast<std::size_t>(row)])]
                         : table.policy;
    }
    /// Rows that the plan names come first, in its order; the others follow by number.
    void put_in_tiers(ReferenceTable& table) const {
        const auto rows = static_cast<std::size_t>(table.config.rows);
        const std::size_t last = c_.shardings.size() - 1;
        table.tier_of.assign(rows, static_cast<int>(last));
        table.place_of.assign(rows, -1);
        const std::string& name = table.config.name;
        for (const sw::TableRowPlan& plan : s_.rows.tables) {
            if (plan.table != name) continue;
            std::int64_t next = 0;
            for (std::size_t tier = 0; tier < last; ++tier)
                for (std::int64_t place = 0; place < plan.tiers[tier]; ++place, ++next) {
                    const auto row = static_cast<std::size_t>(
                        plan.replicated.empty() ? next : plan.replicated[static_cast<std::size_t>(next)]);
                    table.tier_of[row] = static_cast<int>(tier);
                    table.place_of[row] = place;
                }
        }
        std::int64_t place = 0;
        for (std::size_t row = 0; row < rows; ++row)
            if (table.place_of[row] < 0) table.place_of[row] = place++;
    }
    /// The rank that answers what `source` asks of a row; the same for all rows of a table that is not split by row.
    [[nodiscard]] int owner(const ReferenceTable& table, int source, std::int64_t row) const {
        const ReferencePolicy policy = policy_of(table, row);
        if (c_.tiered) row = table.place_of[static_cast<std::size_t>(row)];
        if (policy == ReferencePolicy::row)
            return table.first_rank + static_cast<int>((row + table.index) % table.ranks);
        const int index = c_.tiered ? table.number : table.index;
        if (policy == ReferencePolicy::flex)
            return t_.rank_of(t_.host_of(source), static_cast<int>((row + index) % t_.ranks_per_host));
        return 0;
    }

    /// Tiers in order, each a sum along its tree.
    [[nodiscard]] Vector pool(const ReferenceTable& table, const RankBatch& batch, int source, std::size_t at,
                              std::int32_t length) const {
        Vector total(static_cast<std::size_t>(table.config.dim), 0.0F);
        const auto add = [&](ReferencePolicy policy) {
            const Vector part = pool(table, policy, batch, source, at, length);
            for (std::size_t d = 0; d < total.size(); ++d)
                total[d] += part[d];
        };
        if (coalesced_) {
            add_in_order(table, batch, at, length, total);
        } else if (c_.tiered) {
            std::for_each(tiers_.begin(), tiers_.end(), add);
        } else {
            add(table.policy);
        }
        if (mean_ && length > 0)
            for (float& x : total)
                x /= static_cast<float>(length);
        return total;
    }
    /// Where rows come home one by one: the rows of a bag in the order of its ids.
    void add_in_order(const ReferenceTable& table, const RankBatch& batch, std::size_t at, std::int32_t length,
                      Vector& total) const {
        for (std::size_t k = at; k < at + static_cast<std::size_t>(length); ++k) {
            const bool sent = travels(policy_of(table, batch.ids[k]));
            for (std::size_t d = 0; d < total.size(); ++d) {
                float x = table.weights[static_cast<std::size_t>(batch.ids[k])][d];
                if (sent) x = on_wire(forward_wire_, x);
                total[d] = batch.weights.empty() ? total[d] + x : std::fma(batch.weights[k], x, total[d]);
            }
        }
        for (float& x : total)
            x += 0.0F;
    }
    [[nodiscard]] Vector pool(const ReferenceTable& table, ReferencePolicy policy, const RankBatch& batch, int source,
                              std::size_t at, std::int32_t length) const {
        const auto dim = static_cast<std::size_t>(table.config.dim);
        std::map<int, Vector> parts;  // by owner of the row
        for (std::size_t k = at; k < at + static_cast<std::size_t>(length); ++k) {
            if (policy_of(table, batch.ids[k]) != policy) continue;
            Vector& part = parts.try_emplace(owner(table, source, batch.ids[k]), dim, 0.0F).first->second;
            const Vector& row = table.weights[static_cast<std::size_t>(batch.ids[k])];
            for (std::size_t d = 0; d < dim; ++d)
                part[d] = batch.weights.empty() ? part[d] + row[d] : std::fma(batch.weights[k], row[d], part[d]);
        }
        std::map<int, Vector> hosts;
        for (auto& [rank, part] : parts) {
            Vector& host = hosts.try_emplace(t_.host_of(rank), dim, 0.0F).first->second;
            for (std::size_t d = 0; d < dim; ++d)
                host[d] += travels(policy) ? on_wire(forward_wire_, part[d]) : part[d];
        }
        // what is summed at a relay travels on from there
        Vector total(dim, 0.0F);
        for (const auto& [host, part] : hosts)
            for (std::size_t d = 0; d < dim; ++d)
                total[d] += two_stage_ && crosses(policy) ? on_wire(forward_wire_, part[d]) : part[d];
        if (sums_at_relays_ && crosses(policy))
            for (float& x : total)
                x = on_wire(forward_wire_, x);
        for (float& x : total)
            x += 0.0F;
        return total;
    }

    void collect(const RankBatch& batch, int rank,
                 std::vector<std::map<std::int64_t, std::vector<Term>>>& touched) const {
        // where each bag's ids and gradients begin
        std::vector<std::size_t> first_id;
        std::vector<std::size_t> first_gradient;
        std::size_t at = 0;
        std::size_t number = 0;
        int column = 0;
        int width = 0;
        for (std::int64_t f = 0; f < s_.features(); ++f)
            width += s_.dim_of(f);
        for (std::int64_t f = 0; f < s_.features(); ++f) {
            for (std::int64_t i = 0; i < batch.samples; ++i) {
                const auto length = static_cast<std::size_t>(batch.lengths[first_id.size()]);
                first_id.push_back(at);
                first_gradient.push_back(sequences_ ? number
                                                    : static_cast<std::size_t>(i) * static_cast<std::size_t>(width) +
                                                          static_cast<std::size_t>(column));
                at += length;
                number += length * static_cast<std::size_t>(s_.dim_of(f));
            }
            column += s_.dim_of(f);
        }
        for (std::int64_t i = 0; i < batch.samples; ++i) {
            for (std::int64_t f = 0; f < s_.features(); ++f) {
                const auto bag = static_cast<std::size_t>(f * batch.samples + i);
                const ReferenceTable& table = table_of(f);
                const auto dim = static_cast<std::size_t>(table.config.dim);
                for (std::int32_t k = 0; k < batch.lengths[bag]; ++k) {
                    const std::size_t id = first_id[bag] + static_cast<std::size_t>(k);
                    Term term{
                        .source = rank, .weight = batch.weights.empty() ? 1.0F : batch.weights[id], .gradient = {}};
                    const std::size_t from = first_gradient[bag] + (sequences_ ? static_cast<std::size_t>(k) * dim : 0);
                    const bool sent = !coalesced_ && travels(policy_of(table, batch.ids[id]));
                    term.gradient.reserve(dim);
                    for (std::size_t d = 0; d < dim; ++d) {
                        float g = batch.gradient[from + d];
                        if (mean_) g /= static_cast<float>(batch.lengths[bag]);
                        if (sent) g = on_wire(backward_wire_, g);
                        term.gradient.push_back(g);
                    }
                    touched[static_cast<std::size_t>(s_.table_of[static_cast<std::size_t>(f)])][batch.ids[id]]
                        .push_back(std::move(term));
                }
            }
        }
    }

    [[nodiscard]] Vector sum(const ReferenceTable& table, ReferencePolicy policy,
                             const std::vector<Term>& terms) const {
        const auto dim = static_cast<std::size_t>(table.config.dim);
        if (by_sample_) {
            Vector total(dim, 0.0F);
            for (const Term& term : terms)
                for (std::size_t d = 0; d < dim; ++d)
                    total[d] = std::fma(term.weight, term.gradient[d], total[d]);
            for (float& x : total)
                x += 0.0F;
            return total;
        }
        if (wide_tree_) return sum_tree<double>(table, policy, terms);
        return sum_tree<float>(table, policy, terms);
    }

    /// Along the tree; what a lossy wire carries is a float before it rounds.
    template <class Value>
    [[nodiscard]] Vector sum_tree(const ReferenceTable& table, ReferencePolicy policy,
                                  const std::vector<Term>& terms) const {
        const auto dim = static_cast<std::size_t>(table.config.dim);
        // sums of a rank travel where each has a copy, and coalesced; sums of a host where each host has one
        const auto travelled = [&](bool does, Value x) -> Value {
            if (!does || backward_wire_ == ReferenceWire::fp32) return x;
            return on_wire(backward_wire_, static_cast<float>(x));
        };
        std::map<int, std::map<int, std::vector<Value>>> hosts;  // (host, rank)
        for (const Term& term : terms) {
            std::vector<Value>& rank =
                hosts[t_.host_of(term.source)].try_emplace(term.source, dim, Value{0}).first->second;
            for (std::size_t d = 0; d < dim; ++d)
                rank[d] = std::fma(static_cast<Value>(term.weight), static_cast<Value>(term.gradient[d]), rank[d]);
        }
        std::vector<Value> total(dim, Value{0});
        for (auto& [host, ranks] : hosts) {
            std::vector<Value> of_host(dim, Value{0});
            for (auto& [rank, part] : ranks)
                for (std::size_t d = 0; d < dim; ++d)
                    of_host[d] += travelled(coalesced_ || !travels(policy), part[d]);
            for (std::size_t d = 0; d < dim; ++d)
                total[d] += travelled(!crosses(policy), of_host[d]);
        }
        Vector rounded;
        for (const Value x : total)
            rounded.push_back(static_cast<float>(travelled(!crosses(policy), x)) + 0.0F);
        return rounded;
    }

    /// The sum of squares of columns [first, end): eight lanes in double, then the lanes in order.
    static double squares(const Vector& g, std::size_t first, std::size_t end) {
        double lanes[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        for (std::size_t d = first; d < end; ++d)
            lanes[(d - first) % 8] += static_cast<double>(g[d]) * g[d];
        double all = 0;
        for (const double lane : lanes)
            all += lane;
        return all;
    }

    void update(ReferenceTable& table, std::size_t row, Vector g) const {
        const std::size_t dim = g.size();
        const OwnSettings& own = s_.settings[static_cast<std::size_t>(table.number)];
        const float rate = own.rate == 0.0F ? rate_ : own.rate;
        const Vector unscaled = g;
        for (std::size_t d = 0; d < dim; ++d) {
            float& weight = table.weights[row][d];
            g[d] *= scale_;
            if (own.l2 != 0.0F) g[d] = std::fma(own.l2, weight, g[d]);
            g[d] += 0.0F;
            if (own.weight_decay != 0.0F)
                weight *= static_cast<float>(1.0 - static_cast<double>(rate) * static_cast<double>(own.weight_decay));
        }
        double norm = 0;
        if (c_.rule.needs_row_norm) {
            std::size_t chunks = 1;
            if (table.config.sharding.starts_with("col"))  // chunk by chunk
                chunks = std::min({dim, static_cast<std::size_t>(table.ranks),
                                   table.config.sharding == "col" ? dim : std::size_t{3}});
            // what is exchanged is not scaled yet
            const bool exchanged = table.config.sharding.starts_with("col") && scale_ != 1.0F;
            for (std::size_t k = 0; k < chunks; ++k)
                norm += squares(exchanged ? unscaled : g, dim * k / chunks, dim * (k + 1) / chunks);
            if (exchanged) norm *= static_cast<double>(scale_) * static_cast<double>(scale_);
        }
        ReferenceRow of{.weights = &table.weights[row], .element_state = {}, .row_state = &table.row_state[row]};
        for (std::vector<Vector>& slot : table.element_state)
            of.element_state.push_back(&slot[row]);
        c_.rule.update(of, g, {.rate = rate, .number = step_, .sum_of_squares = norm, .c = moment_scale_});
    }

    const Composition& c_;
    const Scenario& s_;
    sw::Topology t_;
    float rate_;
    float moment_scale_;  // c of sqrt(v / c)
    float scale_ = 1.0F;  // of gradients, in the step under way
    // names that inner loops would compare again and again
    ReferenceWire forward_wire_;
    ReferenceWire backward_wire_;
    bool sequences_;
    bool mean_;
    bool by_sample_;
    bool wide_tree_;
    bool two_stage_;
    bool coalesced_;
    bool sums_at_relays_;
    std::vector<ReferencePolicy> tiers_;
    std::int64_t step_ = 0;
    std::vector<ReferenceTable> tables_;
    std::vector<Module> modules_;  // (tower)
    std::vector<Vector> relays_;   // (rank): gradients of the last step
};

}  // namespace laws
