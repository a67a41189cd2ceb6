// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "embedding.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/embedding/compose/policies.hpp"
#include "shardwise/embedding/make_layer.hpp"
#include "shardwise/optimizer/frozen.hpp"
#include "shardwise/sharding/col.hpp"

namespace train_dlrm {

namespace {

/// What the policies are called in the library.
sw::LayerNames names_of(const Policies& p, const sw::AnyModule::Config* module) {
    sw::LayerNames names;
    names.shardings = {p.sharding};
    if (p.sharding == "mixed") names.shardings = {"dp", "table", "row"};
    if (p.sharding == "tiered") names.shardings = p.tiers;
    names.tiered = p.sharding == "tiered";
    names.collective = p.collective;
    names.optimizer = p.optimizer;
    names.pooling = p.sequences ? "none" : p.pooling;
    names.requests = p.requests;
    names.order = p.order;
    names.forward_wire = p.sharding == "dp" ? "fp32" : p.wire;  // where all rows are replicated, gradients alone travel
    names.backward_wire = p.wire;
    if (module != nullptr && p.tower != "pass") names.module = sw::module_policy<sw::AnyModule>(*module);
    return names;
}

/// The library's policies, and whole tables placed by load.
const sw::KnownPolicies& known() {
    static const sw::KnownPolicies all = sw::KnownPolicies{}.add_sharding<sw::Col<1>>();
    return all;
}

/// The names that this program takes on an axis: none for sequences, which nobody asks for by name.
std::vector<std::string> choices(const std::string& axis) {
    if (axis == "tower") return {"pass", "dot", "cross"};
    if (axis == "precision") return {"single", "blocks", "wide"};
    std::vector<std::string> names = known().names(axis);
    if (axis == "sharding") names.insert(names.end(), {"mixed", "tiered"});
    if (axis == "pooling") names = {"sum", "mean"};
    if (axis == "optimizer") std::erase(names, sw::Frozen::name);
    if (axis == "collective") std::erase(names, sw::BoundedLag<>::name);  // for inference
    return names;
}

/// Letters to put in, leave out, replace or exchange with their neighbour, to make one word of the other (optimal
/// string alignment).
std::size_t typing_errors(const std::string& a, const std::string& b) {
    std::vector<std::vector<std::size_t>> errors(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i)
        for (std::size_t j = 0; j <= b.size(); ++j) {
            std::size_t& least = errors[i][j];
            least = std::max(i, j);
            if (i == 0 || j == 0) continue;
            const bool same = a[i - 1] == b[j - 1];
            least = std::min({errors[i - 1][j] + 1, errors[i][j - 1] + 1, errors[i - 1][j - 1] + (same ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                least = std::min(least, errors[i - 2][j - 2] + 1);
        }
    return errors[a.size()][b.size()];
}

/// What was meant by a name that there is not; empty where it is like none.
std::string nearest(const std::string& name, const std::vector<std::string>& names) {
    std::string best;
    std::size_t least = (name.size() + 1) / 2;  // as many errors are another word
    for (const std::string& one : names)
        if (const std::size_t errors = typing_errors(name, one); errors < least) {
            least = errors;
            best = one;
        }
    return best;
}

void check_name(const std::string& axis, const std::string& name) {
    auto names = choices(axis);
    if (axis == "sharding" || axis == "requests") names.emplace_back("auto");
    if (std::find(names.begin(), names.end(), name) != names.end()) return;
    const std::string meant = nearest(name, names);
    throw sw::BadInput{fmt::format("--{} '{}': there is no such policy; give one of {}{}", axis, name,
                                   fmt::join(names, ", "),
                                   meant.empty() ? "" : fmt::format(" (did you mean {}?)", meant))};
}

/// Checks all that `auto` may choose on an axis.
void check_each(const Policies& p, const char* axis, std::string Policies::*value,
                std::span<const char* const> values) {
    for (const char* one : values) {
        Policies chosen = p;
        chosen.*value = one;
        try {
            check_policies(chosen);
        } catch (const sw::BadInput& error) {
            throw sw::BadInput{fmt::format("--{} auto may choose {}; {}", axis, one, error.what())};
        }
    }
}

}  // namespace

void check_policies(const Policies& p) {
    if (p.sharding == "auto") return check_each(p, "sharding", &Policies::sharding, automatic);
    if (p.requests == "auto") return check_each(p, "requests", &Policies::requests, automatic_requests);
    check_name("sharding", p.sharding);
    check_name("requests", p.requests);
    check_name("collective", p.collective);
    check_name("optimizer", p.optimizer);
    if (!p.sequences) check_name("pooling", p.pooling);
    check_name("order", p.order);
    if (!p.precision.empty()) check_name("precision", p.precision);
    check_name("wire", p.wire);
    check_name("tower", p.tower);
    const sw::AnyModule::Config any{};
    const std::string refused = known().refusal(names_of(p, &any));
    if (refused.empty()) return;
    if (p.sequences)
        throw sw::BadInput{fmt::format("--sharding {} --collective {} --requests {} --order {} with sequences: {}",
                                       p.sharding, p.collective, p.requests, p.order, refused)};
    throw sw::BadInput{fmt::format("--sharding {} --collective {} --pooling {} --requests {} --order {} --tower {}: {}",
                                   p.sharding, p.collective, p.pooling, p.requests, p.order, p.tower, refused)};
}

std::string axis_help(const std::string& axis) {
    const std::string all = fmt::format("{}", fmt::join(choices(axis), ", "));
    if (axis == "sharding")
        return "Where each row lives: " + all +
               " (table: whole tables in turn; col1: whole tables by load; mixed: tables are dp, table and row in "
               "turn; tiered: each row by how often it is looked up); or "
               "auto: row or col, "
               "whichever exchanges the first batch sooner";
    if (axis == "collective")
        return "How looked-up vectors travel: " + all +
               " (straight home; parts summed on each host before they cross; tables in towers of hosts)";
    if (axis == "tower")
        return "What each tower does with its features' vectors before they cross hosts: " + all +
               " (nothing; linear maps to fewer or smaller vectors; a cross network and a linear map). dot and cross "
               "need --collective hierarchical";
    if (axis == "pooling") return "What a lookup returns: " + all;
    if (axis == "requests")
        return "What a batch asks for: " + all +
               " (every id; or each distinct id of a table once, bags being made where the samples are); or auto: "
               "whichever exchanges the first batch sooner";
    if (axis == "optimizer") return "How rows learn, and dense weights alike: " + all;
    if (axis == "order")
        return "How gradients are summed: " + all +
               ". All but tree sum in double where the order depends on the number of ranks, so that a run does not";
    if (axis == "precision")
        return "How dense layers sum: " + all +
               fmt::format(
                   " (products of a rank's samples in single precision; of blocks of {} samples, so that a run does "
                   "not depend "
                   "on the number of ranks where each has whole blocks, or less than one; in double, whatever the "
                   "ranks have). "
                   "Unless given: single with --order tree; else blocks, and wide for sequences, whose histories are "
                   "of any length",
                   sw::BatchProducts::block);
    return "The precision of vectors and gradients on the wire: " + all +
           " (of gradients alone where rows are dp, whose vectors do not travel)";
}

std::string wire_note(const Policies& p) {
    if (p.sharding != "dp" || p.wire == "fp32") return "";
    return fmt::format(
        "--wire {0} with --sharding dp: every rank has all rows, so that no vector travels or is rounded; the sums of "
        "gradients are rounded to {0}, of a rank, of a host and in all",
        p.wire);
}

std::unique_ptr<sw::LayerBase> make_embedding(const Policies& policies, sw::CommunicatorRef comm,
                                              const std::vector<sw::TableConfig>& tables,
                                              const sw::LayerOptions& options, std::optional<float> moment_scale,
                                              const sw::AnyModule::Config& module) {
    check_policies(policies);
    sw::LayerNames names = names_of(policies, &module);
    names.moment_scale = moment_scale;
    return sw::make_layer(comm, tables, names, options, known());
}

sw::LayerBlueprint draw_embedding(const Policies& policies, const sw::Topology& topology,
                                  const std::vector<sw::TableConfig>& tables, const sw::Towers& towers,
                                  const sw::AnyModule::Config& module, const sw::RowPlan* rows,
                                  const sw::GroupOptions& groups) {
    check_policies(policies);
    return sw::draw_layer(topology, tables, names_of(policies, &module),
                          {.towers = towers, .groups = groups, .rows = rows}, known());
}

}  // namespace train_dlrm
