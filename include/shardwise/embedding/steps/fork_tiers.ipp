// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <type_traits>
#include <vector>

#include "shardwise/core/at.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/embedding/lanes/check_ids.hpp"
#include "shardwise/embedding/lanes/means.hpp"
#include "shardwise/embedding/steps/fork_tiers.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

/// What the fork leaves to the merge and to their adjoints. Ids are numbered feature by feature.
struct TiersTape {
    Buffer<std::uint8_t> tier_of;      // (id)
    Buffer<std::int32_t> lengths;      // (tier, feature, sample)
    Buffer<std::int32_t> narrow;       // (id by tier, then feature), or
    Buffer<std::int64_t> wide;         // these
    Buffer<float> weights;             // as they
    Buffer<std::int32_t> places;       // as they, of sequences: which of the feature's ids it is
    Buffer<float> results;             // of sums, where they are not written where they are wanted
    std::vector<std::int64_t> counts;  // (tier, feature): ids
    std::vector<std::int64_t> cursor;  // (tier, feature): where ids go
    std::int64_t samples = 0;
    std::int64_t features = 0;
    std::int64_t first_own = 0;  // sample of this rank
    std::int64_t own = 0;        // its samples

    [[nodiscard]] std::int64_t cell(std::size_t tier, int feature) const {
        return static_cast<std::int64_t>(tier) * features + feature;
    }
    /// (sample): lengths of a feature's bags in a tier.
    [[nodiscard]] const std::int32_t* lengths_of(std::size_t tier, int feature) const {
        return lengths.data() + cell(tier, feature) * samples;
    }
    /// (sample of this rank).
    [[nodiscard]] const std::int32_t* own_lengths_of(std::size_t tier, int feature) const {
        return lengths_of(tier, feature) + first_own;
    }
};
struct CutTiersTape {
    Buffer<float> copies;
    std::vector<MatrixView<const float>> gradients;  // (feature)
};

namespace detail {

/// The sums that tiers make take this many floats, beside what is written where it is wanted.
inline std::int64_t results_of(const RowTiers& tiers, std::int64_t samples) {
    std::int64_t floats = 0;
    for (const RowTiers::Feature& feature : tiers.features)
        floats += feature.pooled ? (tiers.tiers - 1) * samples * feature.dim : 0;
    return floats;
}
/// And the gradient of a feature that many.
inline constexpr auto gradients_of = [](const RowTiers& tiers, const auto& batch, int f) {
    const RowTiers::Feature& feature = at(tiers.features, f);
    return feature.mean ? batch.samples() * feature.dim : 0;
};
inline constexpr auto ids_of = [](const RowTiers&, const auto& batch, int f) { return batch.values(f); };
/// Whether some feature is a sequence: then every id has a place.
inline bool any_sequence(const RowTiers& tiers) {
    return std::any_of(tiers.features.begin(), tiers.features.end(),
                       [](const auto& feature) { return !feature.pooled; });
}
/// The sum of of(tiers, batch, feature), as whole as buffers are.
template <class Batch, class Of>
std::int64_t over_features(const RowTiers& tiers, const Batch& batch, Of of) {
    std::decay_t<decltype(batch.values(0))> sum = 0;
    for (int f = 0; f < static_cast<int>(tiers.features.size()); ++f)
        sum += of(tiers, batch, f);
    return rounded_up(sum);
}

struct ForkTiersBody {
    using Tape = TiersTape;
    using View = shardwise::View<Lanes, ForkTiersFamily::Tapes, ForkTiersFamily::Sees>;

    static void run(StepEnv& env, View& view) {
        Lanes& lanes = view.lanes();
        const RowTiers& tiers = view.state<RowTiers>();
        const std::string wrong = first_wrong(lanes.batch, tiers);
        if (!wrong.empty()) {
            env.error.note(FlightError::bad_input, wrong);
            lanes.clear_batch();
        }
        TiersTape& tape = view.tape<TiersTape>();
        tape.first_own = 0;
        tape.own = lanes.shares.empty() ? lanes.batch.samples() : at(lanes.shares, env.rank).samples;
        for (int rank = 0; rank < (lanes.shares.empty() ? 0 : env.rank); ++rank)
            tape.first_own += at(lanes.shares, rank).samples;
        make_room(lanes.batch, tiers, tape, *view.state<WorkMemory>().resource);
        find_tiers(lanes.batch, lanes.times, tiers, tape, view.state<RowCounts>());
        deal(lanes.batch, tiers, tape);
        hand_out(view, tiers, tape);
        lanes.keep_share(env.rank);
    }
    template <class Cost>
    static void memory(const CostEnv& env, const Cost& cost, int rank, MemoryTally& tally) {
        const auto& batch = cost.batch(rank);
        const RowTiers& tiers = *cost.tiers;
        typename Cost::Number all = 0;
        std::int64_t samples = 0;
        bool weighted = false;
        for (int source = 0; source < env.topology.ranks(); ++source) {
            if (source != rank && !cost.at_owner) continue;
            for (int f = 0; f < static_cast<int>(tiers.features.size()); ++f)
                all += cost.batch(source).values(f);
            samples += cost.samples(source);
            weighted |= cost.batch(source).weighted();
        }
        const std::int64_t ids = rounded_up(all);
        tally.need(ids);
        tally.need(4 * tiers.tiers * std::ssize(tiers.features) * samples);
        tally.need(tiers.wide ? 0 : 4 * ids);
        tally.need(tiers.wide ? 8 * ids : 0);
        tally.need(weighted ? 4 * ids : 0);
        tally.need(any_sequence(tiers) ? 4 * ids : 0);
        tally.need(4 * results_of(tiers, batch.samples()));
    }
    /// The batches of each plan, one after the other.
    static void shape(const CostEnv&, EmbeddingCost& cost, std::span<EmbeddingCost* const> plans) {
        for (std::size_t p = 0; p < plans.size(); ++p) {
            EmbeddingCost& plan = *plans[p];
            plan.batches = std::vector<BatchView>(cost.batches.size());
            plan.own.assign(cost.batches.size(), {});
            for (std::size_t rank = 0; rank < cost.batches.size(); ++rank)
                select(cost.batches[rank], *cost.tiers, static_cast<int>(cost.tiers->tier_of(p, plans.size())),
                       cost.features->features[p], plan.pooling->pooled, cost.at_most, plan.own[rank],
                       plan.batches[rank]);
        }
    }
    static void shape(const CostEnv&, EmbeddingExpectation& cost, std::span<EmbeddingExpectation* const> plans) {
        for (std::size_t p = 0; p < plans.size(); ++p)
            plans[p]->begin(*cost.workload, static_cast<int>(cost.tiers->tier_of(p, plans.size())));
    }

  private:
    static std::string first_wrong(const BatchView& batch, const RowTiers& tiers) {
        for (int f = 0; f < static_cast<int>(tiers.features.size()); ++f) {
            const RowTiers::Feature& feature = at(tiers.features, f);
            std::string wrong = first_wrong_id(batch, f, feature.name, feature.table, feature.map->rows());
            if (!wrong.empty()) return wrong;
        }
        for (int f = 0; tiers.hot() && f < static_cast<int>(tiers.features.size()); ++f) {
            std::string wrong;
            batch.with_ids(f, [&](auto ids) { wrong = first_cold(ids, tiers, f); });
            if (!wrong.empty()) return wrong;
        }
        return {};
    }
    /// The first id of a hot batch that is not.
    template <class Ids>
    static std::string first_cold(const Ids& ids, const RowTiers& tiers, int f) {
        const RowTiers::Feature& feature = at(tiers.features, f);
        for (const auto id : ids)
            if (const int tier = feature.map->tier(id); tier >= tiers.tiers)
                return concat({"a hot batch with id ", std::int64_t{id}, " of table '", feature.table,
                               "', a row of tier '", at(tiers.names, tier), "': give it rows of tier '", tiers.names[0],
                               "' alone, which every rank has"});
        return {};
    }
    static void make_room(const BatchView& batch, const RowTiers& tiers, TiersTape& tape,
                          std::pmr::memory_resource& memory) {
        const auto ids = static_cast<std::size_t>(over_features(tiers, batch, ids_of));
        tape.samples = batch.samples();
        tape.features = std::ssize(tiers.features);
        const std::int64_t cells = tiers.tiers * tape.features;
        tape.tier_of.on(memory).resize(ids);
        tape.lengths.on(memory).assign_zero(static_cast<std::size_t>(cells * tape.samples));
        tape.narrow.on(memory).resize(tiers.wide ? 0 : ids);
        tape.wide.on(memory).resize(tiers.wide ? ids : 0);
        tape.weights.on(memory).resize(batch.weighted() ? ids : 0);
        tape.places.on(memory).resize(any_sequence(tiers) ? ids : 0);
        tape.results.on(memory).resize(static_cast<std::size_t>(results_of(tiers, tape.own)));
        tape.counts.assign(static_cast<std::size_t>(cells), 0);
    }
    static void find_tiers(const BatchView& batch, const std::uint32_t* times, const RowTiers& tiers, TiersTape& tape,
                           RowCounts& counts) {
        std::uint8_t* to = tape.tier_of.data();
        counts.lookups.resize(tiers.names.size());
        for (int f = 0; f < static_cast<int>(tape.features); ++f)
            batch.with_ids(f, [&](auto values) {
                const RowMap& map = *at(tiers.features, f).map;
                const std::int32_t* const lengths = batch.lengths(f);
                std::int32_t* const in_tier = tape.lengths.data() + f * tape.samples;
                const std::int64_t next_tier = tape.features * tape.samples;
                auto id = values.begin();
                for (std::int64_t sample = 0; sample < tape.samples; ++sample)
                    for (std::int32_t k = lengths == nullptr ? 1 : lengths[sample]; k > 0; --k, ++id) {
                        const int tier = map.tier(*id);
                        const std::int64_t lookups = times == nullptr ? 1 : *times++;
                        counts.unseen += map.unseen(*id) ? lookups : 0;
                        if (lookups != 1) counts.lookups[static_cast<std::size_t>(tier)] += lookups - 1;
                        ++in_tier[tier * next_tier + sample];
                        *to++ = static_cast<std::uint8_t>(tier);
                    }
            });
        for (std::size_t tier = 0; tier < static_cast<std::size_t>(tiers.tiers); ++tier)
            for (int f = 0; f < static_cast<int>(tape.features); ++f) {
                const std::int32_t* const lengths = tape.lengths_of(tier, f);
                std::int64_t& count = at(tape.counts, tape.cell(tier, f));
                count = std::accumulate(lengths, lengths + tape.samples, std::int64_t{0});
                counts.lookups[tier] += count;
            }
    }
    /// Ids and weights by tier, then feature.
    static void deal(const BatchView& batch, const RowTiers& tiers, TiersTape& tape) {
        tape.cursor.resize(tape.counts.size());
        std::exclusive_scan(tape.counts.begin(), tape.counts.end(), tape.cursor.begin(), std::int64_t{0});
        const std::uint8_t* tier = tape.tier_of.data();
        for (int f = 0; f < static_cast<int>(tape.features); ++f)
            batch.with_ids(f, [&](auto values) {
                const std::int64_t first = batch.first_value(f);
                for (std::int64_t i = 0; i < std::ssize(values); ++i) {
                    const std::int64_t place = at(tape.cursor, tape.cell(*tier++, f))++;
                    const auto id = values[static_cast<std::size_t>(i)];
                    if (tiers.wide)
                        at(tape.wide, place) = id;
                    else
                        at(tape.narrow, place) = static_cast<std::int32_t>(id);
                    if (batch.weighted()) at(tape.weights, place) = batch.weight(first + i);
                    if (!at(tiers.features, f).pooled) at(tape.places, place) = static_cast<std::int32_t>(i);
                }
            });
    }
    static void hand_out(View& view, const RowTiers& tiers, TiersTape& tape) {
        const auto& plans = view.state<FeaturesByPlan>().features;
        const Lanes& lanes = view.lanes();
        float* results = tape.results.data();
        for (std::size_t p = 0; p < plans.size(); ++p) {
            const std::size_t tier = tiers.tier_of(p, plans.size());
            const auto behind = [&](std::size_t cell) { return cell == 0 ? 0 : tape.cursor[cell - 1]; };
            const auto features = static_cast<std::size_t>(tape.features);
            const auto first = static_cast<std::size_t>(behind(tier * features));
            const auto count = static_cast<std::size_t>(behind((tier + 1) * features)) - first;
            const auto part = [&](const auto& all) {
                return all.span().subspan(all.empty() ? 0 : first, all.empty() ? 0 : count);
            };
            Lanes& inside = view.branch(p);
            inside.batch.begin(tape.samples, part(tape.narrow), part(tape.wide), part(tape.weights));
            inside.output.clear();
            inside.places.clear();
            for (const int f : plans[p]) {
                const auto cell = static_cast<std::size_t>(tape.cell(tier, f));
                inside.batch.add_feature(behind(cell) - static_cast<std::int64_t>(first), tape.counts[cell],
                                         tape.lengths_of(tier, f));
                const RowTiers::Feature& feature = at(tiers.features, f);
                inside.places.push_back(feature.pooled ? nullptr : tape.places.data() + behind(cell));
                if (!feature.pooled || tier == 0) {
                    inside.output.push_back(at(lanes.output, f));
                    continue;
                }
                const MatrixView<float> result{results, tape.own, feature.dim};
                inside.output.push_back(result);
                results += result.rows() * result.columns();
            }
            inside.share_as(lanes);
            deal_shares(inside.batch, inside.shares);
        }
    }
    /// One rank's batch of one plan, for the cost reader.
    static void select(const BatchView& from, const RowTiers& tiers, int tier, const std::vector<int>& features,
                       bool pooled, bool at_most, EmbeddingCost::OwnBatch& own, BatchView& to) {
        std::vector<std::int64_t> counts;
        if (at_most) {  // all ids may be of this tier
            if (from.weighted() && pooled) own.weights.push_back(1.0F);
            to.begin(from.samples(), {}, {}, own.weights);
            for (const int f : features)
                to.add_feature(0, from.values(f), nullptr);
            return;
        }
        for (const int f : features) {
            std::int64_t id = from.first_value(f);
            std::int64_t count = 0;
            for (std::int64_t sample = 0; sample < from.samples(); ++sample) {
                own.lengths.push_back(0);
                for (const std::int64_t end = id + from.length(f, sample); id < end; ++id) {
                    if (at(tiers.features, f).map->tier(from.id(id)) != tier) continue;
                    own.ids.push_back(from.id(id));
                    if (from.weighted() && pooled) own.weights.push_back(from.weight(id));
                    ++own.lengths.back();
                    ++count;
                }
            }
            counts.push_back(count);
        }
        to.begin(from.samples(), {}, own.ids, own.weights);
        std::int64_t first = 0;
        for (std::size_t i = 0; i < counts.size(); ++i) {
            to.add_feature(first, counts[i], own.lengths.data() + static_cast<std::int64_t>(i) * from.samples());
            first += counts[i];
        }
    }
};

struct MergeTiersBody {
    using View = shardwise::View<Lanes, MergeTiersFamily::Tapes, MergeTiersFamily::Sees>;

    static void run(StepEnv&, View& view) {
        const Lanes& lanes = view.lanes();
        const RowTiers& tiers = view.state<RowTiers>();
        const TiersTape& tape = view.tape<TiersTape>();
        const auto& plans = view.state<FeaturesByPlan>().features;
        for (std::size_t p = 0; p < plans.size(); ++p) {  // in the order of tiers
            const std::size_t tier = tiers.tier_of(p, plans.size());
            for (std::size_t i = 0; i < plans[p].size() && tier != 0; ++i) {
                const int f = plans[p][i];
                if (at(tiers.features, f).pooled)
                    add(tape.own_lengths_of(tier, f), view.branch(p).output[i], at(lanes.output, f));
            }
        }
        for (int f = 0; f < static_cast<int>(tape.features); ++f)
            if (at(tiers.features, f).mean) divide_by_lengths(lanes.batch.lengths(f), at(lanes.output, f));
    }
    template <class Cost>
    static void shape(const CostEnv&, Cost&, std::span<Cost* const>) {}

  private:
    /// Adds what a tier made of the bags that have an id there.
    static void add(const std::int32_t* lengths, const MatrixView<float>& part, const MatrixView<float>& out) {
        for (std::int64_t i = 0; i < out.rows(); ++i) {
            if (lengths[i] == 0) continue;
            const float* __restrict from = part.row(i);
            float* __restrict to = out.row(i);
            for (std::int64_t d = 0; d < out.columns(); ++d)
                to[d] += from[d];
        }
    }
};

struct CutTiersBody {
    using Tape = CutTiersTape;
    using View = shardwise::View<Lanes, CutTiersFamily::Tapes, CutTiersFamily::Sees>;

    static void run(StepEnv&, View& view) {
        const Lanes& lanes = view.lanes();
        const RowTiers& tiers = view.state<RowTiers>();
        CutTiersTape& tape = view.tape<CutTiersTape>();
        float* to = tape.copies.on(*view.state<WorkMemory>().resource)
                        .resize(static_cast<std::size_t>(over_features(tiers, lanes.batch, gradients_of)))
                        .data();
        tape.gradients.clear();
        for (int f = 0; f < static_cast<int>(tiers.features.size()); ++f) {
            const MatrixView<const float>& gradient = at(lanes.gradient, f);
            tape.gradients.push_back(
                at(tiers.features, f).mean ? divided_by_lengths(lanes.batch.lengths(f), gradient, to) : gradient);
        }
        const auto& plans = view.state<FeaturesByPlan>().features;
        for (std::size_t p = 0; p < plans.size(); ++p) {
            auto& inside = view.branch(p).gradient;
            inside.clear();
            for (const int f : plans[p])
                inside.push_back(at(tape.gradients, f));
        }
    }
    template <class Cost>
    static void memory(const CostEnv&, const Cost& cost, int rank, MemoryTally& tally) {
        tally.need(4 * over_features(*cost.tiers, cost.batch(rank), gradients_of));
    }
    template <class Cost>
    static void shape(const CostEnv&, Cost&, std::span<Cost* const>) {}
};

struct EndTiersBody {
    using View = shardwise::View<Lanes, boost::mp11::mp_list<>>;
    static void run(StepEnv&, View&) {}
    template <class Cost>
    static void shape(const CostEnv&, Cost&, std::span<Cost* const>) {}
};

}  // namespace detail

SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, ForkTiersFamily) {
    return code_from<EmbeddingDomain, detail::ForkTiersBody>();
}
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, MergeTiersFamily) {
    return code_from<EmbeddingDomain, detail::MergeTiersBody>();
}
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, CutTiersFamily) {
    return code_from<EmbeddingDomain, detail::CutTiersBody>();
}
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, EndTiersFamily) {
    return code_from<EmbeddingDomain, detail::EndTiersBody>();
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
