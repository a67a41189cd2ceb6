// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "shardwise/core/at.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/kernels/finite.hpp"
#include "shardwise/embedding/runtime/layer_flight.hpp"

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

SHARDWISE_INLINE void LayerState::share_out(std::span<const int> given, std::span<const std::int64_t> counts) {
    std::vector<steps::BatchShare>& shares = lanes().shares;
    if (counts.size() != shares.size())
        throw BadInput{concat({counts.size(), " numbers of samples for ", shares.size(),
                               " ranks: say how many of the batch's samples are each rank's, in the order of ranks"})};
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        if (counts[i] < 0 || counts[i] > batch().samples() - sum) {
            sum = -1;
            break;
        }
        sum += counts[i];
    }
    if (sum != batch().samples())
        throw BadInput{concat({"numbers of samples of each rank that are not those of the batch, which has ",
                               batch().samples(), ": give numbers from 0 on that add up to it"})};
    for (std::size_t i = 0; i < counts.size(); ++i)
        shares[i].samples = counts[i];
    batch().spread(given, features->names.size());
    deal_shares(batch(), shares);
}

SHARDWISE_INLINE void LayerState::leave_out_wrong() {
    std::vector<steps::BatchShare>& shares = lanes().shares;
    if (std::all_of(shares.begin(), shares.end(), [](const auto& share) { return share.wrong.empty(); })) return;
    const bool weighted = batch().weighted();
    kept = {.samples = 0, .features = std::ssize(features->names)};
    for (steps::BatchShare& share : shares) {
        if (!share.wrong.empty()) share.samples = 0;
        kept.samples += share.samples;
    }
    for (int f = 0; f < static_cast<int>(features->names.size()); ++f)
        for (const steps::BatchShare& share : shares) {
            std::int64_t id = share.samples == 0 ? 0 : share.batch.first_value(f);
            for (std::int64_t sample = 0; sample < share.samples; ++sample) {
                kept.lengths.push_back(static_cast<std::int32_t>(share.batch.length(f, sample)));
                for (const std::int64_t end = id + kept.lengths.back(); id < end; ++id) {
                    kept.values.push_back(share.batch.id(id));
                    if (weighted) kept.weights.push_back(share.batch.weight(id));
                }
            }
        }
    batch().bind(kept.view(), features->names);
    deal_shares(batch(), shares);
}

SHARDWISE_INLINE void LayerState::allocate_output(int rank) {
    const steps::BatchView& given = lanes().shares.empty() ? batch() : at(lanes().shares, rank).batch;
    samples = given.samples();
    const std::int64_t elements = features->output_elements(given);
    float* const data = buffer.resize(static_cast<std::size_t>(elements)).data();
    float* next = data + samples * features->width;  // sequences lie behind the pooled matrix
    auto& output = lanes().output;
    output.clear();
    sequences.clear();
    lengths.clear();
    for (std::size_t f = 0; f < features->results.size(); ++f) {
        const LayerFeatures::Result& result = features->results[f];
        if (result.pooled) {
            output.emplace_back(elements == 0 ? nullptr : data + result.column, samples, result.dim, features->width);
            continue;
        }
        const std::int64_t rows = given.values(static_cast<int>(f));
        output.emplace_back(elements == 0 ? nullptr : next, rows, result.dim);
        next += rows * result.dim;
        sequences.emplace_back(output.back());
        const std::int32_t* const own = given.lengths(static_cast<int>(f));
        lengths.emplace_back(own, own == nullptr ? 0 : static_cast<std::size_t>(samples));
    }
}

SHARDWISE_INLINE LayerVectors LayerState::vectors() {
    return {.pooled = {buffer.data(), samples, features->width}, .sequences = sequences, .lengths = lengths};
}

SHARDWISE_INLINE std::string LayerState::wrong_gradient(const LayerVectors& given) {
    const auto shape = [](std::int64_t rows, std::int64_t columns) { return concat({rows, " x ", columns}); };
    const MatrixView<const float>& all = given.pooled;
    if (features->width > 0 && (all.rows() != samples || all.columns() != features->width))
        return concat({"the gradient is ", shape(all.rows(), all.columns()), ", and the output ",
                       shape(samples, features->width)});
    if (given.sequences.size() > sequences.size())
        return concat({"a gradient of ", given.sequences.size(), " matrices for ", sequences.size(), " features"});
    for (std::size_t f = 0; f < features->results.size(); ++f) {
        const LayerFeatures::Result& result = features->results[f];
        if (result.pooled) continue;
        const auto number = static_cast<std::size_t>(result.column);
        const MatrixView<const float> one =
            number < given.sequences.size() ? given.sequences[number] : MatrixView<const float>{};
        const std::int64_t rows = sequences[number].rows();
        if (number >= given.sequences.size() || one.rows() != rows || one.columns() != result.dim)
            return concat({"the gradient of feature '", features->names[f], "' is ", shape(one.rows(), one.columns()),
                           ", and the output ", shape(rows, result.dim)});
    }
    return {};
}

/// Which number of a result's gradient is no finite number; empty: none. Results of towers have their names.
SHARDWISE_INLINE std::string LayerState::wrong_number(const MatrixView<const float>& of, std::size_t result) {
    for (std::int64_t row = 0; row < of.rows(); ++row)
        for (std::int64_t column = 0; column < of.columns(); ++column) {
            const float number = of(row, column);
            if (std::isfinite(number)) continue;
            const std::string what =
                features->of_towers ? concat({"tower ", result}) : concat({"feature '", features->names[result], "'"});
            std::int64_t sample = row;
            if (const LayerFeatures::Result& one = features->results[result]; !one.pooled) {
                const auto& bags = lengths[static_cast<std::size_t>(one.column)];
                std::int64_t ids = 0;
                for (sample = 0; sample < std::ssize(bags); ++sample) {
                    ids += bags[static_cast<std::size_t>(sample)];
                    if (row < ids) break;
                }
                if (bags.empty()) sample = row;
            }
            return concat({"the gradient of ", what, ", sample ", sample, ", column ", column, " is ",
                           std::isnan(number) ? "not a number"
                           : number > 0       ? "infinite"
                                              : "minus infinity"});
        }
    return {};
}

/// Makes the sums of squares that results want, out of the same read.
SHARDWISE_INLINE bool LayerState::pooled_finite(const MatrixView<const float>& given) {
    const std::int64_t wanted = features->squares(samples);
    if (wanted == 0) return features->width == 0 || all_finite(given);
    double* to = squares.resize(static_cast<std::size_t>(wanted)).data();
    parts.clear();
    for (const LayerFeatures::Result& result : features->results) {
        double* const of_rows = result.squares ? to : nullptr;
        lanes().squares.push_back(of_rows);
        if (result.pooled) parts.push_back({.first = result.column, .columns = result.dim, .squares = of_rows});
        if (result.squares) to += samples;
    }
    return all_finite(given, parts);
}

SHARDWISE_INLINE void LayerState::bind_gradient(const LayerVectors& given, bool look_at_numbers) {
    auto& gradient = lanes().gradient;
    std::string wrong = wrong_gradient(given);
    gradient.clear();
    lanes().squares.clear();
    if (wrong.empty())
        for (const LayerFeatures::Result& result : features->results)
            gradient.push_back(result.pooled ? given.pooled.columns_from(result.column, result.dim)
                                             : at(given.sequences, result.column));
    // Pooled ones lie side by side: all of a sample in one go.
    if (look_at_numbers && wrong.empty()) {
        bool finite = pooled_finite(given.pooled);
        for (const MatrixView<const float>& one : given.sequences)
            finite = finite && all_finite(one);
        for (std::size_t result = 0; result < gradient.size() && !finite && wrong.empty(); ++result)
            wrong = wrong_number(gradient[result], result);
    }
    if (wrong.empty()) return;
    flight.env().error.note(FlightError::bad_input, wrong);
    lanes().squares.clear();
    gradient.assign(lanes().output.begin(), lanes().output.end());  // stands in until all ranks know
}

}  // namespace detail

}  // namespace shardwise::inline SHARDWISE_ABI
