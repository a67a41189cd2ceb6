// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory_resource>
#include <span>
#include <string>
#include <utility>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/dense/batch_products.hpp"

/// \file
/// The dense parameters of a model: named matrices in one span of values and one span of gradients.

namespace shardwise::inline SHARDWISE_ABI {

/// One matrix of weights and its gradient, both contiguous. A vector is a matrix of one row.
struct Parameter {
    std::string name;        ///< unique in its set, for example "bottom.0.weight"
    std::int64_t index = 0;  ///< position in its set
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    MatrixView<float> value;                ///< (rows, columns); empty until the set is allocated
    MatrixView<float> gradient;             ///< (rows, columns); empty until the set is allocated
    MatrixView<double> wide_gradient = {};  ///< (rows, columns); empty unless the set is allocated with wide gradients

    /// Number of elements.
    [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(rows * columns); }
    /// The elements of the value, row by row: what a checkpoint holds.
    [[nodiscard]] std::span<float> values() const noexcept { return {value.data(), size()}; }
    /// The elements of the gradient, row by row.
    [[nodiscard]] std::span<float> gradients() const noexcept { return {gradient.data(), size()}; }
};

/// All dense parameters of a model.
///
/// Layers reserve their parameters when constructed, then the model allocates once. All values lie in one buffer and
/// all gradients in another, in the order of reservation, so that adding gradients over ranks is one call on
/// `gradients()` and an optimizer step is one pass over `values()`. Each parameter starts at a multiple of 64 bytes;
/// the few floats between two of them are zero in both buffers, and stay zero under every optimizer here.
/// References to parameters stay valid for the life of the set, also when it is moved.
class ParameterSet {
  public:
    /// \param resource  where values and gradients live; a MemoryAccount's `tables()`
    explicit ParameterSet(std::pmr::memory_resource& resource)
        : values_{resource}, gradients_{resource}, wide_gradients_{resource} {}

    /// Adds a matrix of (rows, columns). Not collective; allocates no values yet.
    /// \throws BadInput when the set is allocated already, the name is taken, or a size is not positive
    const Parameter& reserve(std::string name, std::int64_t rows, std::int64_t columns) {
        if (allocated_)
            throw BadInput{concat({"parameter '", name, "' comes after the set was allocated: reserve all first"})};
        if (rows <= 0 || columns <= 0)
            throw BadInput{concat({"parameter '", name, "' is (", rows, ", ", columns, "): both are at least 1"})};
        if (find(name) != nullptr) throw BadInput{concat({"two parameters are named '", name, "': names are unique"})};
        const auto index = static_cast<std::int64_t>(parameters_.size());
        return parameters_.emplace_back(Parameter{
            .name = std::move(name), .index = index, .rows = rows, .columns = columns, .value = {}, .gradient = {}});
    }

    /// Makes room for all values and gradients, all zero. Two allocations of the padded size, and but with
    /// DensePrecision::single a third for gradients in double. \throws BadInput when the set is allocated already
    void allocate(DensePrecision precision = DensePrecision::single) {
        if (allocated_) throw BadInput{"the parameters are allocated twice: allocate once, after the last reserve"};
        precision_ = precision;
        std::size_t total = 0;
        for (const Parameter& parameter : parameters_)
            total += padded(parameter);
        float* value = values_.assign_zero(total).data();
        float* gradient = gradients_.assign_zero(total).data();
        double* wide = precision != DensePrecision::single ? wide_gradients_.assign_zero(total).data() : nullptr;
        for (Parameter& parameter : parameters_) {
            if (wide != nullptr) {
                parameter.wide_gradient = {wide, parameter.rows, parameter.columns};
                wide += padded(parameter);
            }
            parameter.value = {value, parameter.rows, parameter.columns};
            parameter.gradient = {gradient, parameter.rows, parameter.columns};
            value += padded(parameter);
            gradient += padded(parameter);
        }
        allocated_ = true;
    }

    /// What the parameters reserved so far take, values and gradients. \param precision  as allocate is given
    [[nodiscard]] std::int64_t bytes(DensePrecision precision = DensePrecision::single) const {
        const auto total = static_cast<std::size_t>(span_elements());
        return static_cast<std::int64_t>(
            2 * buffer_capacity(total * sizeof(float)) +
            (precision != DensePrecision::single ? buffer_capacity(total * sizeof(double)) : 0));
    }
    /// Elements of values() once what is reserved so far is allocated.
    [[nodiscard]] std::int64_t span_elements() const {
        std::size_t total = 0;
        for (const Parameter& parameter : parameters_)
            total += padded(parameter);
        return static_cast<std::int64_t>(total);
    }
    /// Elements of the parameters reserved so far.
    [[nodiscard]] std::int64_t elements() const {
        std::size_t total = 0;
        for (const Parameter& parameter : parameters_)
            total += parameter.size();
        return static_cast<std::int64_t>(total);
    }

    /// Values of all parameters, with the zeros between them.
    [[nodiscard]] std::span<float> values() noexcept { return values_.span(); }
    [[nodiscard]] std::span<const float> values() const noexcept { return values_.span(); }
    /// Gradients of all parameters, at the same places: what ranks add up.
    [[nodiscard]] std::span<float> gradients() noexcept { return gradients_.span(); }
    [[nodiscard]] std::span<const float> gradients() const noexcept { return gradients_.span(); }

    /// That which they were allocated with.
    [[nodiscard]] DensePrecision precision() const noexcept { return precision_; }
    /// Gradients in double of all parameters, at the same places; empty in single precision.
    [[nodiscard]] std::span<double> wide_gradients() noexcept { return wide_gradients_.span(); }
    /// Rounds the wide gradients, summed over ranks, into gradients().
    void round_gradients() {
        for (std::size_t i = 0; i < wide_gradients_.size(); ++i)
            gradients_[i] = static_cast<float>(wide_gradients_[i]);
    }

    /// The parameters in the order of reservation.
    [[nodiscard]] auto begin() const noexcept { return parameters_.begin(); }
    [[nodiscard]] auto end() const noexcept { return parameters_.end(); }
    /// Number of parameters.
    [[nodiscard]] std::size_t size() const noexcept { return parameters_.size(); }
    /// The parameter of that name, or null.
    [[nodiscard]] const Parameter* find(const std::string& name) const noexcept {
        for (const Parameter& parameter : parameters_)
            if (parameter.name == name) return &parameter;
        return nullptr;
    }

  private:
    static std::size_t padded(const Parameter& parameter) noexcept {
        constexpr std::size_t step = buffer_alignment / sizeof(float);
        return (parameter.size() + step - 1) / step * step;
    }

    std::deque<Parameter> parameters_;  // layers keep references
    Buffer<float> values_;
    Buffer<float> gradients_;
    Buffer<double> wide_gradients_;
    DensePrecision precision_ = DensePrecision::single;
    bool allocated_ = false;
};

}  // namespace shardwise::inline SHARDWISE_ABI
