// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/embedding/batch_view.hpp"
#include "shardwise/embedding/lanes.hpp"
#include "shardwise/embedding/layer_blueprint.hpp"
#include "shardwise/embedding/layer_towers.hpp"
#include "shardwise/plan/flight.hpp"
#include "shardwise/plan/frame.hpp"
#include "shardwise/plan/program.hpp"

/// \file
/// One batch on its way through a layer: its memory, and the handle that users hold.

namespace shardwise::inline SHARDWISE_ABI {

/// What a lookup returns, or the gradient of it: one matrix, or one a feature.
struct LayerVectors {
    MatrixView<const float> pooled = {};  ///< (samples, sum of the features' dims, or of the towers' results)
    std::span<const MatrixView<const float>> sequences = {};  ///< Pooling<None>: (ids, dim) a feature
};

class LayerBase;
class LayerFlight;

namespace detail {

/// The memory of one flight; used again by the next one.
struct LayerState {
    LayerState(const LayerFeatures& of, const Program& program, CommunicatorRef comm, const Topology& topology,
               std::pmr::memory_resource& memory)
        : features{&of}, frame{program}, core{program, frame.parts(), comm, topology, memory}, buffer{memory} {}

    /// Binds the lanes of a branch to what all flights share.
    void bind(const BranchPath& branch, const Placement& placement, Store& store, std::pmr::memory_resource& memory,
              const void* rule, const UpdateStep& step, const LayerTowers& towers) {
        Lanes& lanes = frame.lanes(branch);
        lanes.placement = &placement;
        lanes.store = &store;
        lanes.memory = &memory;
        lanes.rule = rule;
        lanes.step = &step;
        lanes.towers = &towers;
        lanes.batch = &batch;
        lanes.output = &output;
        lanes.gradient = &gradient;
    }

    const LayerFeatures* features;
    Frame<Lanes> frame;
    BatchView batch;
    std::vector<MatrixView<float>> output;          // (result)
    std::vector<MatrixView<const float>> result;    // (feature), with Pooling<None>
    std::vector<MatrixView<const float>> gradient;  // (result)
    FlightCore core;
    Buffer<float> buffer;
    LayerFlight* handle = nullptr;
    bool looked_up = false;

    /// Makes room for the result of the batch.
    void allocate_output() {
        const std::int64_t samples = batch.samples();
        const bool pooled = features->pooled;
        output.clear();
        result.clear();
        const std::int64_t elements = features->output_elements(batch);
        float* const data = buffer.resize(static_cast<std::size_t>(elements)).data();
        std::int64_t first = 0;
        for (std::size_t f = 0; f < features->dims.size(); ++f) {
            const int dim = features->dims[f];
            const std::int64_t rows = pooled ? samples : batch.values(static_cast<int>(f));
            output.emplace_back(elements == 0 ? nullptr : data + first, rows, dim, pooled ? features->width : dim);
            first += pooled ? dim : rows * dim;
            if (!pooled) result.emplace_back(output.back());
        }
    }
    [[nodiscard]] LayerVectors vectors() const {
        if (features->pooled) return {.pooled = {buffer.data(), batch.samples(), features->width}, .sequences = {}};
        return {.pooled = {}, .sequences = result};
    }
    /// A gradient of another shape is bad input; the ranks agree on it at the next exchange, before any row changes.
    void bind_gradient(const LayerVectors& given) {
        const auto wrong = [&](const std::string& what, std::int64_t rows, std::int64_t columns,
                               std::int64_t expected_rows, std::int64_t expected_columns) {
            core.env().error.note(FlightError::bad_input, what + " is " + std::to_string(rows) + " x " +
                                                              std::to_string(columns) + ", and the output " +
                                                              std::to_string(expected_rows) + " x " +
                                                              std::to_string(expected_columns));
        };
        gradient.assign(output.begin(), output.end());  // stands in where the shape is wrong
        if (features->pooled) {
            const MatrixView<const float>& all = given.pooled;
            if (all.rows() != batch.samples() || all.columns() != features->width) {
                wrong("the gradient", all.rows(), all.columns(), batch.samples(), features->width);
                return;
            }
            int first = 0;
            for (std::size_t f = 0; f < features->dims.size(); ++f) {
                gradient[f] = all.columns_from(first, features->dims[f]);
                first += features->dims[f];
            }
            return;
        }
        if (given.sequences.size() > features->names.size()) {
            core.env().error.note(FlightError::bad_input, "a gradient of " + std::to_string(given.sequences.size()) +
                                                              " matrices for " +
                                                              std::to_string(features->names.size()) + " features");
            return;
        }
        for (std::size_t f = 0; f < features->names.size(); ++f) {
            const MatrixView<const float> one =
                f < given.sequences.size() ? given.sequences[f] : MatrixView<const float>{};
            if (f >= given.sequences.size() || one.rows() != output[f].rows() || one.columns() != features->dims[f]) {
                wrong("the gradient of feature '" + features->names[f] + "'", one.rows(), one.columns(),
                      output[f].rows(), features->dims[f]);
                return;
            }
            gradient[f] = one;
        }
    }
};

}  // namespace detail

/// A batch on its way: from start to the end of backward, or of the handle, when nothing is to be learnt from it.
/// Destroying it (or its layer) before `forward` withdraws from the exchange and fails the other ranks.
class [[nodiscard]] LayerFlight {
  public:
    LayerFlight() = default;
    LayerFlight(LayerFlight&& other) noexcept { take(other); }
    LayerFlight& operator=(LayerFlight&& other) noexcept {
        if (this != &other) {
            end();
            take(other);
        }
        return *this;
    }
    LayerFlight(const LayerFlight&) = delete;
    LayerFlight& operator=(const LayerFlight&) = delete;
    ~LayerFlight() { end(); }

    /// Completes what has arrived; never waits, starts nothing.
    void poll() {
        if (state_ != nullptr) state_->core.poll();
    }
    /// Ends the flight where it is, as destroying the handle does.
    void end() noexcept {
        if (detail::LayerState* state = release()) state->core.withdraw();
    }
    /// False once the flight has ended: after backward, an error, or the end of its layer.
    explicit operator bool() const noexcept { return state_ != nullptr; }

  private:
    friend LayerBase;
    explicit LayerFlight(detail::LayerState& state) : state_{&state} { state.handle = this; }

    void take(LayerFlight& other) noexcept {
        state_ = std::exchange(other.state_, nullptr);
        if (state_ != nullptr) state_->handle = this;
    }
    /// The flight is over for its handle; its state goes on to the end of backward, or is free.
    detail::LayerState* release() noexcept {
        if (state_ != nullptr) state_->handle = nullptr;
        return std::exchange(state_, nullptr);
    }
    detail::LayerState* state_ = nullptr;
};

}  // namespace shardwise::inline SHARDWISE_ABI
