// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// A batch of bags of ids, feature by feature: what an embedding layer looks up.

namespace shardwise::inline SHARDWISE_ABI {

/// A view of a jagged batch: for each feature, for each sample, a bag of ids (feature-major, then sample).
///
/// The bags are given by `lengths` (features * samples entries), or by `offsets` (features * samples + 1 entries, the
/// first one 0, the last one values.size()), or by neither: then every bag has exactly one id.
/// \tparam Id  std::int32_t or std::int64_t
template <class Id>
struct JaggedView {
    static_assert(std::is_same_v<Id, std::int32_t> || std::is_same_v<Id, std::int64_t>,
                  "ids are std::int32_t or std::int64_t");

    std::int64_t samples = 0;
    std::int64_t features = 0;
    std::span<const Id> values;             ///< row numbers, all bags one after the other
    std::span<const std::int32_t> lengths;  ///< (features, samples), or empty
    std::span<const std::int64_t> offsets;  ///< (features * samples + 1), or empty
    std::span<const float> weights;         ///< one an id, or empty: every id counts once
    std::span<const std::string> keys;      ///< names of the features, or empty: the order of the layer

    [[nodiscard]] std::int64_t bags() const noexcept { return samples * features; }
    /// True when every bag has one id and neither lengths nor offsets say so.
    [[nodiscard]] bool single() const noexcept { return lengths.empty() && offsets.empty(); }
    /// Number of ids in bag `bag` = feature * samples + sample. Negative where offsets run backwards.
    [[nodiscard]] std::int64_t length(std::int64_t bag) const noexcept {
        const auto i = static_cast<std::size_t>(bag);
        if (!lengths.empty()) return lengths[i];
        if (!offsets.empty()) return offsets[i + 1] - offsets[i];
        return 1;
    }

    /// Checks that the parts fit together (sizes; lengths not negative; offsets from 0, not backwards, to the end).
    /// Not collective. \throws BadInput naming the feature, the sample and the value
    void validate() const {
        check_sizes();
        check_bags();
    }
    /// The part of it that reads no bag.
    void check_sizes() const {
        constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
        if (samples < 0 || features < 0) throw BadInput{"a batch with a negative number of samples or features"};
        if (static_cast<std::int64_t>(values.size()) > most || (features > 0 && samples > most / features))
            throw BadInput{
                concat({"a batch of ", values.size(), " ids, ", samples, " samples and ", features,
                        " features: a rank's batch has at most 2147483647 ids and bags; give smaller batches"})};
        const auto bag_count = static_cast<std::size_t>(bags());
        if (!keys.empty() && keys.size() != static_cast<std::size_t>(features))
            throw BadInput{
                concat({"a batch of ", features, " features with ", keys.size(), " keys: give one key a feature"})};
        if (!lengths.empty() && !offsets.empty()) throw BadInput{"a batch with lengths and offsets: give one of them"};
        if (!lengths.empty() && lengths.size() != bag_count)
            throw BadInput{concat({"a batch of ", bag_count, " bags with ", lengths.size(),
                                   " lengths: give one length a feature and sample"})};
        if (!offsets.empty() && offsets.size() != bag_count + 1)
            throw BadInput{concat({"a batch of ", bag_count, " bags with ", offsets.size(),
                                   " offsets: give one more than there are bags"})};
        if (!weights.empty() && weights.size() != values.size())
            throw BadInput{
                concat({values.size(), " ids with ", weights.size(), " weights: give one weight an id, or none"})};
    }
    /// The other part: one pass over lengths or offsets.
    void check_bags() const {
        const auto name = [&](std::int64_t bag) {
            const std::int64_t feature = bag / samples;
            return concat(
                {"feature ",
                 (keys.empty() ? std::to_string(feature) : "'" + keys[static_cast<std::size_t>(feature)] + "'"),
                 ", sample ", bag % samples});
        };
        std::int64_t total = single() ? bags() : 0;
        if (!offsets.empty() && offsets[0] != 0)
            throw BadInput{concat({"offsets start at ", offsets[0], ": they start at 0"})};
        if (!single()) {
            const auto backwards = [&](std::int64_t bag) {  // without a difference, which may overflow
                const auto i = static_cast<std::size_t>(bag);
                return offsets.empty() ? lengths[i] < 0 : offsets[i + 1] < offsets[i];
            };
            for (std::int64_t bag = 0; bag < bags(); ++bag) {
                if (backwards(bag))
                    throw BadInput{
                        concat({name(bag), ": ",
                                (offsets.empty() ? "a length of " + std::to_string(length(bag))
                                                 : "offsets run backwards, from " +
                                                       std::to_string(offsets[static_cast<std::size_t>(bag)]) + " to " +
                                                       std::to_string(offsets[static_cast<std::size_t>(bag) + 1]))})};
                if (offsets.empty()) total += length(bag);
            }
            if (!offsets.empty()) total = offsets.back();
        }
        if (total != static_cast<std::int64_t>(values.size()))
            throw BadInput{concat({"the bags hold ", total, " ids, but there are ", values.size(), " values"})};
    }
};

/// A jagged batch that owns its parts; filled by readers and generators, handed to layers as a view.
template <class Id>
struct JaggedBatch {
    std::int64_t samples = 0;
    std::int64_t features = 0;
    std::vector<Id> values = {};
    std::vector<std::int32_t> lengths = {};  ///< empty: every bag has one id
    std::vector<float> weights = {};         ///< empty: every id counts once

    [[nodiscard]] JaggedView<Id> view() const noexcept {
        return {.samples = samples,
                .features = features,
                .values = values,
                .lengths = lengths,
                .offsets = {},
                .weights = weights,
                .keys = {}};
    }
};

/// The samples of several batches, one batch's behind the other's: what a rank is given with Ids<AtOwner>.
/// \param features  numbers of those that are wanted, in this order
/// \throws BadInput for batches that do not fit, or name their features by keys
template <class Id>
[[nodiscard]] JaggedBatch<Id> concatenated(std::span<const JaggedView<Id>> batches, std::span<const int> features) {
    JaggedBatch<Id> all{.samples = 0, .features = std::ssize(features)};
    bool single = true;
    bool weighted = false;
    std::vector<std::vector<std::int64_t>> first;  // (batch, feature): its first id
    for (const JaggedView<Id>& batch : batches) {
        batch.validate();
        if (!batch.keys.empty())
            throw BadInput{"a batch with keys among those to concatenate: give its features in the layer's order"};
        auto& of_batch = first.emplace_back(static_cast<std::size_t>(batch.features) + 1, 0);
        for (std::int64_t f = 0; f < batch.features; ++f) {
            std::int64_t& next = of_batch[static_cast<std::size_t>(f) + 1] = of_batch[static_cast<std::size_t>(f)];
            for (std::int64_t i = 0; i < batch.samples; ++i)
                next += batch.length(f * batch.samples + i);
        }
        all.samples += batch.samples;
        single &= batch.single() || batch.bags() == 0;
        weighted |= !batch.weights.empty();
    }
    for (const int feature : features)
        for (std::size_t b = 0; b < batches.size(); ++b) {
            const JaggedView<Id>& batch = batches[b];
            if (feature < 0 || feature >= batch.features)
                throw BadInput{concat({"feature ", feature, " of a batch of ", batch.features, " features"})};
            const std::int64_t begin = first[b][static_cast<std::size_t>(feature)];
            const std::int64_t end = first[b][static_cast<std::size_t>(feature) + 1];
            for (std::int64_t i = 0; i < batch.samples && !single; ++i)
                all.lengths.push_back(static_cast<std::int32_t>(batch.length(feature * batch.samples + i)));
            all.values.insert(all.values.end(), batch.values.begin() + begin, batch.values.begin() + end);
            for (std::int64_t i = begin; i < end && weighted; ++i)
                all.weights.push_back(batch.weights.empty() ? 1.0F : batch.weights[static_cast<std::size_t>(i)]);
        }
    return all;
}

}  // namespace shardwise::inline SHARDWISE_ABI
