// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/embedding/kernels/finite.hpp"
#include "shardwise/embedding/lanes/lanes.hpp"
#include "shardwise/embedding/runtime/features.hpp"
#include "shardwise/plan/flight.hpp"
#include "shardwise/plan/frame.hpp"
#include "shardwise/plan/itinerary.hpp"
#include "shardwise/plan/lag_schedule.hpp"

/// \file
/// One batch on its way through a layer: its memory, and the handle that users hold.

namespace shardwise::inline SHARDWISE_ABI {

/// What a lookup returns, or the gradient of it. Pooled features side by side in one matrix, sequences in one each.
struct LayerVectors {
    /// (samples, sum of the pooled features' dims, or of the towers' results)
    MatrixView<const float> pooled = {};
    /// (sequence): (ids, dim), all bags one after the other
    std::span<const MatrixView<const float>> sequences = {};
    /// (sequence): (samples) ids a bag, of a result; empty where each bag has one. A gradient needs none
    std::span<const std::span<const std::int32_t>> lengths = {};
};

class LayerBase;
class LayerFlight;

namespace detail {

/// The memory of one flight; used again by the next one.
struct LayerState {
    LayerState(const LayerFeatures& of, const Itinerary& itinerary, const States& states, CommunicatorRef comm,
               std::pmr::memory_resource& memory, std::unique_ptr<Carrier> carrier)
        : features{&of},
          frame{itinerary.program(), states},
          flight{itinerary, frame.parts(), comm, memory, std::move(carrier)},
          buffer{memory},
          squares{memory} {
        lanes().batch.on(memory);
    }

    const LayerFeatures* features;
    Frame<steps::Lanes> frame;
    Flight flight;
    Buffer<float> buffer;
    Buffer<double> squares;                          // (result that wants them, sample): LayerFeatures::Result::squares
    std::vector<RowPart> parts;                      // (pooled result): of a row of the gradient
    std::vector<MatrixView<const float>> sequences;  // (sequence)
    std::vector<std::span<const std::int32_t>> lengths;  // (sequence)
    LayerFlight* handle = nullptr;
    LagSchedule* schedule = nullptr;  // of flights that may be apart
    bool looked_up = false;
    std::uint64_t in_buffer = 0;     // the last flight whose result was written there
    std::string refused;             // what all ranks found wrong with it in a drain
    std::int64_t samples = 0;        // of this rank
    JaggedBatch<std::int64_t> kept;  // of a batch in which some ranks' bags are wrong, those of the others

    [[nodiscard]] steps::Lanes& lanes() { return frame.lanes(); }
    [[nodiscard]] steps::BatchView& batch() { return lanes().batch; }
    /// With Ids<AtOwner>: the batch is of these features, and of so many samples of each rank of the group.
    /// \throws BadInput where the numbers do not fit
    void share_out(std::span<const int> given, std::span<const std::int64_t> counts);
    /// The bags of ranks whose share is wrong are left out.
    void leave_out_wrong();
    /// Makes room for the result of the batch. \param rank  this one's index in its group
    void allocate_output(int rank);
    [[nodiscard]] LayerVectors vectors();
    /// A gradient of another shape is bad input, and, where they are looked at, numbers that are not finite; the ranks
    /// agree on it at the next exchange, before any row changes.
    void bind_gradient(const LayerVectors& given, bool look_at_numbers);

  private:
    [[nodiscard]] std::string wrong_gradient(const LayerVectors& given);
    [[nodiscard]] bool pooled_finite(const MatrixView<const float>& given);
    [[nodiscard]] std::string wrong_number(const MatrixView<const float>& of, std::size_t result);
};

}  // namespace detail

/// A batch on its way: from start to the end of backward, or of the handle, when nothing is to be learnt from it.
/// Destroying it (or its layer) before `forward` withdraws from the exchange and fails the other ranks; of a frozen
/// layer with Collective<BoundedLag<>> it is forgotten, and nobody fails. Where such a layer learns, all ranks destroy
/// the same flights.
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

    /// Completes what has arrived, and answers ranks that have asked where they may be apart; never waits, starts
    /// nothing.
    void poll() {
        if (state_ == nullptr) return;
        if (state_->schedule != nullptr) state_->schedule->serve();
        state_->flight.poll();
    }
    /// Whether all rows of a batch of a layer with Collective<BoundedLag<>> have come, so that `forward` waits for
    /// nobody; answers ranks that have asked. False of other layers, whose ranks are in step. Never waits.
    [[nodiscard]] bool ready() {
        return state_ != nullptr && state_->schedule != nullptr && state_->schedule->has_come(state_->flight.number());
    }
    /// Ends the flight where it is, as destroying the handle does.
    void end() noexcept {
        if (detail::LayerState* state = release()) state->flight.withdraw();
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

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/embedding/runtime/layer_flight.ipp"
#endif
