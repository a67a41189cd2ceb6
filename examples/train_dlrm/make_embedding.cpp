// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "embedding.hpp"
#include "policies.hpp"
#include "shardwise/core/error.hpp"

namespace train_dlrm {

namespace {

template <class List>
std::vector<std::string> names_of() {
    std::vector<std::string> names;
    mp::mp_for_each<mp::mp_transform<mp::mp_identity, List>>(
        [&](auto identity) { names.emplace_back(decltype(identity)::type::name); });
    return names;
}

template <class List>
void check_name(const char* flag, const std::string& name) {
    const auto names = names_of<List>();
    if (std::find(names.begin(), names.end(), name) == names.end())
        throw sw::BadInput{
            fmt::format("{} '{}': there is no such policy; give one of {}", flag, name, fmt::join(names, ", "))};
}

/// `name` is one of those that this program has over relays.
template <class List>
void check_relayed(const Policies& p, const char* flag, const std::string& name) {
    const auto names = names_of<List>();
    if (std::find(names.begin(), names.end(), name) == names.end())
        throw sw::BadInput{
            fmt::format("{} {} with --collective {}: this program has {} there; use one of them, or "
                        "--collective flat",
                        flag, name, p.collective, fmt::join(names, ", "))};
}

sw::BadInput not_there(const Policies& p) {
    return sw::BadInput{
        fmt::format("there is no layer with --sharding {} and --collective {}: choose one", p.sharding, p.collective)};
}

/// A sharding, a collective and a module: a translation unit of compositions.
template <class S, class C, class M>
struct Unit {};
template <class>
struct IsThere;
template <class S, class C, class M>
struct IsThere<Unit<S, C, M>> : std::bool_constant<goes_with<S, C, M>> {};
using Units = mp::mp_copy_if<mp::mp_product<Unit, Shardings, Collectives, TowerModules>, IsThere>;

/// Calls use(Unit<S, C, M>) for the sharding, collective and module of these policies, which go together.
template <class Use>
void with_unit(const Policies& policies, Use use) {
    mp::mp_for_each<Units>([&]<class S, class C, class M>(Unit<S, C, M> unit) {
        const bool has_module = std::is_same_v<M, sw::AnyModule>;
        if (policies.sharding == S::name && policies.collective == C::name && (policies.tower != "pass") == has_module)
            use(unit);
    });
}

}  // namespace

void check_policies(const Policies& p) {
    if (p.sharding == "auto") {
        if (p.collective == "two_stage")
            throw sw::BadInput{
                "--collective two_stage with --sharding auto: it sums the parts of rows that are split, and auto may "
                "choose "
                "columns; use --sharding row or mixed, or --collective flat"};
        for (const char* sharding : automatic) {
            Policies one = p;
            one.sharding = sharding;
            check_policies(one);
        }
        return;
    }
    check_name<Shardings>("--sharding", p.sharding);
    check_name<Collectives>("--collective", p.collective);
    check_name<Optimizers>("--optimizer", p.optimizer);
    check_name<Poolings>("--pooling", p.pooling);
    check_name<Orders>("--order", p.order);
    check_name<Wires>("--wire", p.wire);
    if (p.collective != "flat" && p.sharding == "dp")
        throw sw::BadInput{
            fmt::format("--collective {} with --sharding dp: no vector travels where all rows are replicated; use "
                        "--collective flat",
                        p.collective)};
    if (p.collective == "two_stage" && p.sharding != "row" && p.sharding != "mixed")
        throw sw::BadInput{
            fmt::format("--collective two_stage with --sharding {}: it sums the parts of rows that are split; use "
                        "--sharding row or mixed, or --collective flat",
                        p.sharding)};
    if (p.tower != "pass" && p.tower != "dot" && p.tower != "cross")
        throw sw::BadInput{fmt::format("--tower '{}': there is no such policy; give one of pass, dot, cross", p.tower)};
    if (p.tower != "pass" && p.collective != "hierarchical")
        throw sw::BadInput{
            fmt::format("--tower {} with --collective {}: a tower's module works where the vectors of all its "
                        "features meet; use --collective hierarchical",
                        p.tower, p.collective)};
    if (p.tower != "pass" && p.sharding == "mixed")
        throw sw::BadInput{
            fmt::format("--tower {} with --sharding mixed: a tower's module takes all features of the tower, and those "
                        "of a mixed layer travel apart; use --sharding row, col or table",
                        p.tower)};
    if (p.tower != "pass" && p.pooling != "sum")
        throw sw::BadInput{fmt::format("--tower {} with --pooling {}: a tower's module takes sums; use --pooling sum",
                                       p.tower, p.pooling)};
    if (p.collective != "flat") {
        check_relayed<RelayedOptimizers>(p, "--optimizer", p.optimizer);
        check_relayed<RelayedOrders>(p, "--order", p.order);
    }
    if (p.order == "sample" && (p.sharding == "dp" || p.sharding == "mixed"))
        throw sw::BadInput{
            fmt::format("--order sample with --sharding {}: the sum by sample needs every contribution at "
                        "one owner, and replicated rows are summed on each rank first; use --order wide_tree "
                        "or tree, or --sharding row, col or table",
                        p.sharding)};
    if (p.order == "sample" && p.wire != "fp32")
        throw sw::BadInput{"--order sample is built with --wire fp32 alone in this program"};
}

std::string axis_help(const std::string& axis) {
    const auto all = [](const auto& names) { return fmt::format("{}", fmt::join(names, ", ")); };
    if (axis == "sharding")
        return "Where each row lives: " + all(names_of<Shardings>()) +
               " (tables are dp, table and row in turn); or auto: row "
               "or col, whichever exchanges the first batch sooner";
    if (axis == "collective")
        return "How looked-up vectors travel: " + all(names_of<Collectives>()) +
               " (straight home; parts summed on each host before they cross; tables in towers of hosts)";
    if (axis == "tower")
        return "What each tower does with its features' vectors before they cross hosts: pass, dot, cross (nothing; "
               "linear maps to fewer or smaller vectors; a cross network and a linear map). dot and cross need "
               "--collective hierarchical";
    if (axis == "pooling") return "What a lookup returns: " + all(names_of<Poolings>());
    if (axis == "optimizer") return "How rows learn, and dense weights alike: " + all(names_of<Optimizers>());
    if (axis == "order")
        return "How gradients are summed: " + all(names_of<Orders>()) +
               ". All but tree sum in double where the order depends on the number of ranks, dense layers included, so "
               "that a run does not; tree sums in single precision and is faster";
    return "The precision of vectors and gradients on the wire: " + all(names_of<Wires>());
}

std::unique_ptr<sw::LayerBase> make_embedding(const Policies& policies, sw::CommunicatorRef comm,
                                              const std::vector<sw::TableConfig>& tables,
                                              const sw::LayerOptions& options, const sw::AnyModule::Config& module) {
    check_policies(policies);
    std::unique_ptr<sw::LayerBase> made;
    with_unit(policies, [&]<class S, class C, class M>(Unit<S, C, M>) {
        made = make_composition<S, C, M>(policies, comm, tables, options, module);
    });
    if (made == nullptr) throw not_there(policies);
    return made;
}

sw::LayerBlueprint draw_embedding(const Policies& policies, const sw::Topology& topology,
                                  const std::vector<sw::TableConfig>& tables, const sw::Towers& towers,
                                  const sw::AnyModule::Config& module) {
    check_policies(policies);
    std::optional<sw::LayerBlueprint> drawn;
    with_unit(policies, [&]<class S, class C, class M>(Unit<S, C, M>) {
        drawn = draw_composition<S, C, M>(policies, topology, tables, towers, module);
    });
    if (!drawn) throw not_there(policies);
    return std::move(*drawn);
}

}  // namespace train_dlrm
