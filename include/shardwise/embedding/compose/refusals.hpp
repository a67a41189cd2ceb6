// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string_view>

#include "shardwise/core/config.hpp"

/// \file
/// What makes no sense together, and why: one list, for types and for names.

namespace shardwise::inline SHARDWISE_ABI {

/// What the refusals look at: facts of a composition that do not name its policies.
struct LayerFacts {
    enum class Way { flat, two_stage, hierarchical };

    Way way = Way::flat;
    bool mixed = false;         ///< several sharding policies, one a table
    bool tiered = false;        ///< several, one a tier of rows
    bool any_copies = false;    ///< some tables have several copies
    bool none_travels = false;  ///< every rank has all rows
    bool none_crosses = false;  ///< no table has its home in the world
    bool sums_parts = false;    ///< some bags' rows are split
    bool module = false;        ///< towers have one
    bool only_sums = true;      ///< every feature is pooled, none a mean
    bool coalesced = false;     ///< each distinct id travels once
    bool by_sample = false;     ///< Order<Sample>
    bool exact_forward = true;
    bool sequences = false;  ///< some features may be sequences
    bool at_owner = false;   ///< ranks are given all ranks' ids of their own tables
    bool bounded = false;    ///< ranks may be apart
    bool learns = true;

    /// Errors stay on the rank of their samples.
    [[nodiscard]] constexpr bool errors_stay() const noexcept { return bounded && !learns; }
};

}  // namespace shardwise::inline SHARDWISE_ABI

/// Said of types and of names.
#define SHARDWISE_TIER_ORDERS                                                                                        \
    "Tiered<> takes its tiers from the most copies to one, and Row last: Tiered<DP, Flex, Row>, Tiered<DP, Row> or " \
    "Tiered<Flex, Row>"
#define SHARDWISE_TIERED_IN_MIXED \
    "Tiered<> does not stand inside Mixed<>: a row plan may put all rows of a table into one tier"

/// SHARDWISE_REFUSALS(X): X(condition on `f`, sentence) for each. The first that holds is said.
#define SHARDWISE_REFUSALS(X)                                                                                          \
    X(f.way != LayerFacts::Way::flat && f.none_travels,                                                                \
      "no vector travels where all rows are replicated: use Collective<Flat>")                                         \
    X(f.way != LayerFacts::Way::flat && f.none_crosses && !f.none_travels,                                             \
      "no vector crosses the world where every table has its home in a smaller group: use Collective<Flat>")           \
    X(f.way == LayerFacts::Way::two_stage && !f.none_crosses && !f.sums_parts && !f.coalesced,                         \
      "Collective<TwoStage> sums the parts of a bag on each host before they cross: it needs a sharding that splits "  \
      "rows (Row) and Pooling<Sum> or Pooling<Mean>; otherwise use Collective<Flat>")                                  \
    X((f.module && f.way != LayerFacts::Way::hierarchical),                                                            \
      "a tower's module works where the vectors of all its features meet: Tower<> needs Collective<Hierarchical>")     \
    X((f.module && f.way == LayerFacts::Way::hierarchical && f.mixed),                                                 \
      "a tower's module takes all features of the tower, and the policies of a Mixed layer travel apart: Tower<> "     \
      "needs one sharding policy for all tables")                                                                      \
    X((f.module && f.way == LayerFacts::Way::hierarchical && f.tiered),                                                \
      "a tower's module takes all rows of a feature, and the tiers of a Tiered layer travel apart: Tower<> needs one " \
      "sharding policy for all rows")                                                                                  \
    X((f.module && f.way == LayerFacts::Way::hierarchical && !f.mixed && !f.tiered && !f.none_crosses &&               \
       !f.only_sums),                                                                                                  \
      "a tower's module takes sums: relays know no lengths, so Tower<> needs Pooling<Sum> (for means, give each id "   \
      "of a bag the weight 1 / length)")                                                                               \
    X((f.any_copies && f.by_sample),                                                                                   \
      "Order<Sample> needs every contribution at one owner, and rows with several copies (DP, Flex) are summed at "    \
      "each copy first: use Order<Tree> or Order<WideTree>, or Row, Col<> or Table")                                   \
    X((f.coalesced && f.way == LayerFacts::Way::two_stage && !f.none_crosses),                                         \
      "Collective<TwoStage> sums the parts of a bag on each host, and Requests<Coalesced> makes bags where their "     \
      "samples are: use Collective<Flat> or Collective<Hierarchical>, or Requests<Raw>")                               \
    X((f.coalesced && f.module && f.way == LayerFacts::Way::hierarchical && !f.mixed && !f.tiered &&                   \
       !f.none_crosses && f.only_sums),                                                                                \
      "a tower's module takes sums of bags, and Requests<Coalesced> makes bags where their samples are, behind the "   \
      "tower: use Requests<Raw>")                                                                                      \
    X((f.coalesced && f.by_sample && !f.any_copies && !f.module && f.way != LayerFacts::Way::two_stage),               \
      "Order<Sample> needs every contribution at one owner, and Requests<Coalesced> sums the gradients of a row on "   \
      "each rank first: use Order<Tree> or Order<WideTree>, or Requests<Raw>")                                         \
    X((f.coalesced && f.none_travels && f.way == LayerFacts::Way::flat && !f.by_sample && f.exact_forward),            \
      "no id travels where all rows are replicated: use Requests<Raw>")                                                \
    X(f.way == LayerFacts::Way::flat && f.none_travels && !f.exact_forward,                                            \
      "the forward wire has no effect where all rows are replicated, since no vector travels: use Wire<Fp32, ...>")    \
    X((f.bounded && f.none_travels && f.exact_forward && !f.coalesced && !f.by_sample && !f.module),                   \
      "no vector travels where all rows are replicated, and nobody waits for anybody: use Collective<Flat>")           \
    X(f.at_owner&& f.coalesced,                                                                                        \
      "Requests<Coalesced> asks for each distinct id once, and with Ids<AtOwner> nobody asks: use Requests<Raw>, or "  \
      "Ids<AtSample>")                                                                                                 \
    X(f.at_owner&& f.way != LayerFacts::Way::flat,                                                                     \
      "with Ids<AtOwner> vectors go straight home: use Collective<Flat> or Collective<BoundedLag<k>>, or "             \
      "Ids<AtSample>")                                                                                                 \
    X(f.at_owner&& f.sequences,                                                                                        \
      "the rank of a sample does not know how long its sequences are with Ids<AtOwner>: use Pooling<Sum> or "          \
      "Pooling<Mean>, or Ids<AtSample>")                                                                               \
    X(f.at_owner&& f.none_travels, "no id travels where all rows are replicated: leave Ids<AtOwner> out")

namespace shardwise::inline SHARDWISE_ABI {

/// The sentence that refuses a composition; null where it makes sense.
[[nodiscard]] constexpr const char* refusal(const LayerFacts& f) noexcept {
#define SHARDWISE_REFUSE(condition, sentence) \
    if (condition) return sentence;
    SHARDWISE_REFUSALS(SHARDWISE_REFUSE)
#undef SHARDWISE_REFUSE
    return nullptr;
}

namespace detail {

/// Whether it is this sentence that refuses a composition.
[[nodiscard]] constexpr bool is_refused_by(const LayerFacts& f, std::string_view sentence) noexcept {
    const char* const said = refusal(f);
    return said != nullptr && said == sentence;
}

}  // namespace detail

}  // namespace shardwise::inline SHARDWISE_ABI
