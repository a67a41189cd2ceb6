// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <type_traits>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/embedding/compose/plans.hpp"
#include "shardwise/embedding/compose/refusals.hpp"
#include "shardwise/plan/program.hpp"
#include "shardwise/sharding/policy.hpp"
#include "shardwise/topology/groups.hpp"

/// \file
/// The plans of tables as lines, for layers whose policies are known by name: all that a plan's steps depend on, and no
/// more. So a policy that is placed and split as another costs no plan of its own.

namespace shardwise::inline SHARDWISE_ABI {

/// What the plan of some tables depends on, beside how they are placed.
struct PlanShape {
    LayerFacts::Way way = LayerFacts::Way::flat;
    bool pooled = true;
    bool module = false;
    bool norms = false;         ///< rows whose columns are split exchange norms
    bool none_crosses = false;  ///< no table of the layer has its home in the world
    bool at_owner = false;      ///< ids are given to the owners of their rows

    friend constexpr bool operator==(const PlanShape&, const PlanShape&) = default;
};
/// A plan and its adjoint, as lines.
struct PlanLines {
    Line plan;
    Line adjoint;
};

namespace detail {

/// A sharding policy of which a plan needs no more than this. Names in braces are filled in (see fill_in).
template <Splits Cut, class Home, bool Together>
struct NamedSharding {
    static constexpr const char* name = "{sharding}";
    static constexpr Splits splits = Cut;
    using home = Home;
    static constexpr bool together = Together;
};
struct NamedPooling {
    static constexpr const char* name = "{pooling}";
    static constexpr bool pooled = true;
};
/// What a layer returns, where plans inside it return something else.
struct NamedBags {
    static constexpr const char* name = "{bags}";
};
struct NamedSequences {
    static constexpr const char* name = "{pooling}";
    static constexpr bool pooled = false;
};
template <bool Norms>
struct NamedRule {
    static constexpr const char* name = "{optimizer}";
    static constexpr bool needs_row_norm = Norms;
};
struct NamedOrder {
    static constexpr const char* name = "{order}";
    static constexpr const char* partial_name = "{partial}";
};
struct NamedForward {
    static constexpr const char* name = "{forward}";
};
struct NamedBackward {
    static constexpr const char* name = "{backward}";
};
struct NamedGradient {
    static constexpr const char* name = "{gradient}";
};
struct NamedModule {
    static constexpr const char* name = "{module}";
};
template <LayerFacts::Way W>
using CollectiveOf = std::conditional_t<W == LayerFacts::Way::flat, Flat,
                                        std::conditional_t<W == LayerFacts::Way::two_stage, TwoStage, Hierarchical>>;

/// In place of LayerPolicies.
template <LayerFacts::Way W, bool Module, bool Norms, bool NoneCrosses, bool AtOwners>
struct NamedPolicies {
    using collective = CollectiveOf<W>;
    using rule = NamedRule<Norms>;
    using order = NamedOrder;
    struct wire {  // NOLINT(readability-identifier-naming): as LayerPolicies calls it
        using forward = NamedForward;
        using backward = NamedBackward;
    };
    using gradient_wire = NamedGradient;
    using module = std::conditional_t<Module, NamedModule, PassThrough>;
    static constexpr bool has_module = Module;
    static constexpr LayerFacts facts = [] {
        LayerFacts f;
        f.none_crosses = NoneCrosses;
        return f;
    }();
    static constexpr bool at_owner = AtOwners;
};

template <class S, LayerFacts::Way W, bool Pooled, bool Module, bool Norms, bool NoneCrosses, bool AtOwners>
struct LinesOf {
    static constexpr PlanShape shape{W, Pooled, Module, Norms, NoneCrosses, AtOwners};
    using P = NamedPolicies<W, Module, Norms, NoneCrosses, AtOwners>;
    using type = typename TablesPlan<P, S, std::conditional_t<Pooled, NamedPooling, NamedSequences>>::type;
    static PlanLines lines() {
        return {line_of<steps::EmbeddingDomain, type>(), LineOf<steps::EmbeddingDomain, Adjoint<type>>::entries()};
    }
};

/// Finds a shape among those that tables placed as S have.
template <class S>
class LineFinder {
  public:
    static PlanLines find(const PlanShape& shape) {
        using Way = LayerFacts::Way;
        PlanLines found;
        if constexpr (!std::is_same_v<HomeOf<S>, World>) {
            look<Way::flat, false>(shape, found);
        } else {
            look<Way::flat, false>(shape, found);
            look<Way::two_stage, false>(shape, found);
            look<Way::hierarchical, false>(shape, found);
            look<Way::hierarchical, true>(shape, found);
        }
        return found;
    }

  private:
    template <LayerFacts::Way W, bool Module>
    static void look(const PlanShape& shape, PlanLines& found) {
        look<W, true, Module>(shape, found);
        if constexpr (!Module) look<W, false, Module>(shape, found);
    }
    template <LayerFacts::Way W, bool Pooled, bool Module>
    static void look(const PlanShape& shape, PlanLines& found) {
        look<W, Pooled, Module, false>(shape, found);
        if constexpr (S::splits == Splits::columns) look<W, Pooled, Module, true>(shape, found);
    }
    template <LayerFacts::Way W, bool Pooled, bool Module, bool Norms>
    static void look(const PlanShape& shape, PlanLines& found) {
        look<W, Pooled, Module, Norms, false>(shape, found);
        if constexpr (W == LayerFacts::Way::flat && Pooled) look<W, Pooled, Module, Norms, true>(shape, found);
    }
    template <LayerFacts::Way W, bool Pooled, bool Module, bool Norms, bool AtOwners>
    static void look(const PlanShape& shape, PlanLines& found) {
        using Lines = LinesOf<S, W, Pooled, Module, Norms, false, AtOwners>;
        if (shape == Lines::shape) found = Lines::lines();
        if constexpr (!std::is_same_v<HomeOf<S>, World>) {
            using Alone = LinesOf<S, W, Pooled, Module, Norms, true, AtOwners>;
            if (shape == Alone::shape) found = Alone::lines();
        }
    }
};

}  // namespace detail

/// The plan of tables that policy S places, as lines; a family of policies has one function.
template <ShardingPolicy S>
using NamedPlans = detail::LineFinder<detail::NamedSharding<S::splits, HomeOf<S>, MapsTogether<S>>>;

}  // namespace shardwise::inline SHARDWISE_ABI
