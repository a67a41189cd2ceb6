// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <limits>

#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/runtime/layer_bound.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE LayerBound::LayerBound(const BoundPolicy& policy, const BoundOptions& options, std::size_t features,
                                        bool learning, bool given_at_owner)
    : bounded{policy.bounded}, learns{learning}, at_owner{given_at_owner} {
    if (!bounded) {
        if (options != BoundOptions{})
            throw BadInput{
                "LayerOptions::bound has no effect where ranks go step by step: leave it out, or give the "
                "layer Collective<BoundedLag<>>"};
        return;
    }
    if (policy.k && options.k && *policy.k != *options.k)
        throw BadInput{concat({"the layer's policy says a lag of ", *policy.k, ", and its options say ", *options.k,
                               ": leave one of them out"})};
    k = policy.k ? *policy.k : options.k.value_or(0);
    constexpr int most = std::numeric_limits<int>::max() / 4;  // slots are numbered by an int
    if (k < 0 || k > most) throw BadInput{concat({"a lag of ", k, " batches: give a number from 0 to ", most})};
    if (learns && k > 0)
        throw BadInput{concat({"a lag of ", k,
                               " batches where rows learn: others would look up rows that are yet to be updated; give "
                               "0, or the layer Optimizer<Frozen>"})};
    const char* const why = learns     ? "where rows learn, and ranks answer step by step"
                            : at_owner ? "with Ids<AtOwner>, where nobody asks"
                                       : nullptr;
    if (why != nullptr && options.serve)
        throw BadInput{concat({"serve ", name_of(*options.serve), " has no effect ", why, ": leave it out"})};
    if (why != nullptr && options.progress)
        throw BadInput{concat({"progress ", name_of(*options.progress), " has no effect ", why, ": leave it out"})};
    constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();  // what a JaggedView takes
    if (options.samples > largest)
        throw BadInput{concat({"batches of at most ", options.samples, " samples: give at most ", largest})};
    if (options.samples < 1)
        throw BadInput{concat({"batches of at most ", options.samples,
                               " samples: slots have room for what a batch may have; say it in "
                               "LayerOptions::bound.samples"})};
    samples = options.samples;
    if (options.ids.size() > 1 && options.ids.size() != features)
        throw BadInput{concat({options.ids.size(), " numbers of ids at most for ", features,
                               " features: give one for each, or one for all"})};
    for (std::size_t f = 0; f < features; ++f) {
        ids.push_back(options.ids.empty() ? samples : options.ids[options.ids.size() == 1 ? 0 : f]);
        if (ids.back() < 0 || ids.back() > largest)
            throw BadInput{concat({"at most ", ids.back(), " ids of a feature: give a number from 0 to ", largest})};
    }
    weighted = options.weighted;
    serve = options.serve.value_or(Serve::together);
    progress = options.progress.value_or(Progress::calls);
}

SHARDWISE_INLINE std::string LayerBound::beyond(std::int64_t count) const {
    if (!bounded || count <= samples) return {};
    return concat({"a batch of ", count, " samples, and LayerOptions::bound.samples says at most ", samples,
                   ": give smaller batches, or say more"});
}
SHARDWISE_INLINE std::string LayerBound::beyond(const std::string& feature, std::size_t number,
                                                std::int64_t count) const {
    if (!bounded || count <= ids[number]) return {};
    return concat({"feature '", feature, "' has ", count, " ids, and LayerOptions::bound.ids says at most ",
                   ids[number], ": give smaller batches, or say more"});
}

SHARDWISE_INLINE void LayerBound::add_to(Digest& digest) const {
    if (!bounded) return;
    digest.add(std::int64_t{k}).add(samples).add(std::int64_t{weighted}).add(name_of(serve));
    for (const std::int64_t most : ids)
        digest.add(most);
}

}  // namespace shardwise::inline SHARDWISE_ABI
