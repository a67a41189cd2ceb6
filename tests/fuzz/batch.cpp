// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// What a user hands to a layer: JaggedView::validate, BatchView::bind and check_ids over any lengths, offsets, ids,
/// weights and keys, against checks that are written down one by one.

#include "shardwise/embedding/lanes/batch.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/sharding/placement.hpp"

namespace {

using fuzz::require;
namespace sw = shardwise;

const std::vector<std::string> features = {"x", "y", "z"};
const std::vector<sw::TableConfig> tables = {{.name = "a", .rows = 5, .dim = 1, .features = {"x", "z"}},
                                             {.name = "b", .rows = 2, .dim = 1, .features = {"y"}}};
// Feature -> rows of its table. The layer's order of features is that of its tables.
const std::vector<std::string> order = {"x", "z", "y"};
const std::vector<std::int64_t> rows = {5, 5, 2};

template <class Id>
struct Batch {
    std::int64_t samples = 0;
    std::int64_t feature_count = 0;
    std::vector<Id> values;
    std::vector<std::int32_t> lengths;
    std::vector<std::int64_t> offsets;
    std::vector<float> weights;
    std::vector<std::string> keys;

    [[nodiscard]] sw::JaggedView<Id> view() const {
        return {.samples = samples,
                .features = feature_count,
                .values = values,
                .lengths = lengths,
                .offsets = offsets,
                .weights = weights,
                .keys = keys};
    }
};

/// One of few numbers that are often right, or any.
template <class T>
T number(fuzz::Choices& choices, std::size_t end) {
    const std::size_t small = choices.below(128);
    if (small < 100) return static_cast<T>(small % end);
    if (small == 100) return std::numeric_limits<T>::max();
    if (small == 101) return std::numeric_limits<T>::min();
    return choices.number<T>();
}

template <class Id>
Batch<Id> make(fuzz::Choices& choices) {
    Batch<Id> batch;
    batch.samples = number<std::int64_t>(choices, 4);
    const auto how = choices.number();
    batch.feature_count = (how & 7) != 0 ? 3 : number<std::int64_t>(choices, 5);
    const bool sensible =
        batch.samples >= 0 && batch.samples < 4 && batch.feature_count >= 0 && batch.feature_count < 6;
    const std::size_t bags = sensible ? static_cast<std::size_t>(batch.samples * batch.feature_count) : 3;
    const auto off = [&] { return choices.below(32) == 31 ? std::size_t{1} : std::size_t{0}; };
    std::int64_t total = static_cast<std::int64_t>(bags);
    if ((how & 8) != 0) {
        total = 0;
        for (std::size_t n = bags + off(); n != 0; --n)
            total += batch.lengths.emplace_back(number<std::int32_t>(choices, 3));
    }
    if ((how & 16) != 0) {
        total = off() == 0 ? 0 : number<std::int64_t>(choices, 2);
        batch.offsets.push_back(total);
        for (std::size_t n = bags + off(); n != 0; --n) {
            const auto step = number<std::int64_t>(choices, 3);
            total = static_cast<std::int64_t>(static_cast<std::uint64_t>(total) + static_cast<std::uint64_t>(step));
            batch.offsets.push_back(total);
        }
    }
    const std::size_t count = (total >= 0 && total < 64 ? static_cast<std::size_t>(total) : 5) + off();
    for (std::size_t i = 0; i != count; ++i)
        batch.values.push_back(number<Id>(choices, 2));
    if ((how & 32) != 0)
        for (std::size_t n = count + off(); n != 0; --n)
            batch.weights.push_back(choices.below(32) == 31 ? choices.number<float>() : 0.5F);
    if ((how & 64) != 0)
        for (std::size_t n = 3 + off(); n != 0; --n)
            batch.keys.push_back(features[choices.below(3)]);
    return batch;
}

/// True when the parts fit together.
template <class Id>
bool fits(const Batch<Id>& batch) {
    constexpr __int128 most = std::numeric_limits<std::int32_t>::max();
    if (batch.samples < 0 || batch.feature_count < 0) return false;
    const __int128 bags = __int128{batch.samples} * batch.feature_count;
    if (bags > most) return false;
    if (!batch.keys.empty() && static_cast<__int128>(batch.keys.size()) != batch.feature_count) return false;
    if (!batch.weights.empty() && batch.weights.size() != batch.values.size()) return false;
    const auto ids = static_cast<__int128>(batch.values.size());
    if (!batch.lengths.empty() && !batch.offsets.empty()) return false;
    if (!batch.lengths.empty()) {
        __int128 sum = 0;
        for (const std::int32_t length : batch.lengths) {
            if (length < 0) return false;
            sum += length;
        }
        return static_cast<__int128>(batch.lengths.size()) == bags && sum == ids;
    }
    if (!batch.offsets.empty()) {
        for (std::size_t i = 1; i < batch.offsets.size(); ++i)
            if (batch.offsets[i] < batch.offsets[i - 1]) return false;
        return static_cast<__int128>(batch.offsets.size()) == bags + 1 && batch.offsets.front() == 0 &&
               batch.offsets.back() == ids;
    }
    return ids == bags;
}

/// A bag's ids and weights, found by walking from the first bag.
template <class Id>
struct Bag {
    std::size_t first = 0;
    std::int64_t length = 1;

    Bag(const Batch<Id>& batch, std::int64_t number) {
        std::int64_t start = 0;
        for (std::int64_t b = 0; b <= number; ++b) {
            start += b == 0 ? 0 : length;
            const auto i = static_cast<std::size_t>(b);
            if (!batch.lengths.empty()) length = batch.lengths[i];
            if (!batch.offsets.empty()) length = batch.offsets[i + 1] - batch.offsets[i];
        }
        first = static_cast<std::size_t>(start);
    }
};

/// (feature of the layer) -> its number in the batch; empty when one is missing.
template <class Id>
std::vector<std::int64_t> find_features(const Batch<Id>& batch) {
    if (batch.keys.empty()) return {0, 1, 2};
    std::vector<std::int64_t> found;
    for (const std::string& feature : order)
        for (std::size_t k = 0; k != batch.keys.size(); ++k)
            if (batch.keys[k] == feature) {
                found.push_back(static_cast<std::int64_t>(k));
                break;
            }
    return found.size() == 3 ? found : std::vector<std::int64_t>{};
}

template <class Id>
void check_bound(const Batch<Id>& batch, const sw::steps::BatchView& bound, const std::vector<std::int64_t>& found) {
    static const sw::LayerBlueprint layer = sw::EmbeddingLayer<>::blueprint({}, tables);
    require(bound.samples() == batch.samples, "another number of samples");
    require(bound.weighted() == !batch.weights.empty(), "weights");
    std::string wrong;
    for (int f = 0; f != 3; ++f) {
        std::int64_t ids = 0;
        for (std::int64_t sample = 0; sample != batch.samples; ++sample) {
            const Bag<Id> bag{batch, found[static_cast<std::size_t>(f)] * batch.samples + sample};
            require(bound.length(f, sample) == bag.length, "another length");
            for (std::int64_t i = 0; i != bag.length; ++i) {
                const std::int64_t value = bound.first_value(f) + ids++;
                const std::size_t at = bag.first + static_cast<std::size_t>(i);
                require(value == static_cast<std::int64_t>(at), "another value");
                const std::int64_t id = batch.values[at];
                require(bound.id(value) == id, "another id");
                if (!batch.weights.empty())
                    require(std::memcmp(&batch.weights[at], &*std::vector{bound.weight(value)}.begin(), 4) == 0,
                            "weight");
                const bool bad = id < 0 || id >= rows[static_cast<std::size_t>(f)];
                if (wrong.empty() && (bad || !std::isfinite(bound.weight(value))))
                    wrong = "feature '" + order[static_cast<std::size_t>(f)] + "', sample " + std::to_string(sample) +
                            ": " + (bad ? "id " : "the weight of id ") + std::to_string(id) + " is ";
            }
        }
        require(bound.values(f) == ids, "another number of ids");
    }
    std::string error;
    try {
        layer.check(bound);
    } catch (const sw::BadInput& refused) {
        error = refused.what();
    }
    require(error.empty() == wrong.empty() && error.starts_with(wrong),
            "another error:", error + ", expected " + wrong);
}

template <class Id>
void run(fuzz::Choices& choices) {
    const Batch<Id> batch = make<Id>(choices);
    const std::vector<std::int64_t> found = find_features(batch);
    const bool expected = fits(batch);
    bool valid = true;
    try {
        batch.view().validate();
    } catch (const sw::BadInput&) {
        valid = false;
    }
    require(valid == expected, "accepted or refused otherwise");
    sw::steps::BatchView bound;
    try {
        bound.bind(batch.view(), order);
    } catch (const sw::BadInput& refused) {
        require(!expected || batch.feature_count != 3 || found.empty(), "refused:", refused.what());
        require(bound.samples() == 0 && bound.values(0) == 0 && !bound.weighted(), "a refused batch is not empty");
        return;
    }
    require(expected && batch.feature_count == 3 && !found.empty(), "accepted");
    check_bound(batch, bound, found);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Choices choices{data, size};
    if (choices.below(2) == 0) {
        run<std::int32_t>(choices);
    } else {
        run<std::int64_t>(choices);
    }
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
    fuzz::Random random{seed};
    if (!random.one_in(16)) return LLVMFuzzerMutate(data, size, most);
    std::string text;
    for (std::size_t n = random.below(100); n != 0; --n)
        text += static_cast<char>(random.below(100));  // numbers that are often right
    return fuzz::become(text, data, most);
}
