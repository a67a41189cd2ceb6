// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "delays.hpp"
#include "options.hpp"
#include "samples.hpp"
#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/comm/counting.hpp"
#include "shardwise/comm/counting_slots.hpp"
#include "shardwise/comm/one_sided_ref.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/dense/dlrm.hpp"
#include "shardwise/embedding/runtime/layer_base.hpp"
#include "shardwise/plan/trace.hpp"

/// \file
/// Lookup, exchange and dense stages of k + 1 batches on one rank.

namespace infer_dlrm {

/// Milliseconds of a run on this rank, by stage.
struct Stages {
    double delay = 0;     ///< the rank was late on purpose
    double start = 0;     ///< ids or vectors are looked up, packed and put
    double bottom = 0;    ///< bottom MLP
    double exchange = 0;  ///< the oldest batch is waited for, others are answered, parts are put together
    double top = 0;       ///< interaction, top MLP and probabilities

    Stages& operator+=(const Stages& more) noexcept;
};

/// What a run took on this rank.
struct Run {
    double milliseconds = 0;
    Stages stages;
};

class Pipeline {
  public:
    /// Makes the model, and loads it where that was asked for. Collective. \param slots  none: ranks go step by step
    /// \throws BadInput for slots that take more memory than there is, and a checkpoint of other tables
    Pipeline(const Options& options, sw::CommunicatorRef comm, std::optional<sw::OneSidedRef> slots,
             const Samples& samples);

    /// Looks some batches up, and predicts. Collective: ranks are together before and behind it.
    /// \param first, end  batches \param number  of the run, for delays
    [[nodiscard]] Run run(std::int64_t first, std::int64_t end, int number);

    /// Of this rank's samples of the last run, in its order.
    [[nodiscard]] const std::vector<float>& probabilities() const noexcept { return probabilities_; }
    [[nodiscard]] const sw::LayerBase& layer() const noexcept { return *layer_; }
    [[nodiscard]] const sw::MemoryAccount& memory() const noexcept { return *memory_; }
    [[nodiscard]] sw::Tracer& tracer() noexcept { return *tracer_; }
    /// Puts and messages of this rank in all timed runs, and messages of the communicator between the first start and
    /// the end of a drain.
    [[nodiscard]] const sw::TierTraffic& put() const noexcept { return put_; }
    [[nodiscard]] std::int64_t messages() const noexcept { return messages_; }
    /// Bytes of the slots of all ranks' messages here.
    [[nodiscard]] std::int64_t slot_bytes() const;

  private:
    /// Of a rank, which batches of it a layer is given.
    struct Batch {
        sw::JaggedBatch<std::int64_t> given;  ///< with Ids<AtOwner>: all ranks' ids of this rank's tables
        std::vector<std::int64_t> samples;    ///< (rank)
    };
    [[nodiscard]] const RankSamples& own(std::int64_t batch) const {
        return (*samples_)[static_cast<std::size_t>(batch)][static_cast<std::size_t>(comm_.rank())];
    }
    void start(std::int64_t batch);
    void complete(Stages& stages);
    /// Of a bag one vector, whatever the layer pools: (samples, tables * dim). Valid until the next call.
    [[nodiscard]] sw::MatrixView<const float> pooled(const sw::LayerVectors& vectors, std::int64_t samples);
    void load();
    [[nodiscard]] sw::TierTraffic put_so_far() const;
    [[nodiscard]] std::int64_t messages_so_far() const;

    const Options* o_;
    const Samples* samples_;
    sw::CommunicatorRef below_;
    sw::CountingCommunicator<sw::CommunicatorRef> comm_;
    std::optional<sw::OneSidedRef> slots_below_;
    std::optional<sw::CountingSlots<sw::OneSidedRef>> slots_;
    std::unique_ptr<sw::MemoryAccount> memory_ = std::make_unique<sw::MemoryAccount>();
    std::unique_ptr<sw::Tracer> tracer_ = std::make_unique<sw::Tracer>();
    std::unique_ptr<sw::LayerBase> layer_;
    std::optional<sw::DlrmDense> dense_;
    std::vector<Batch> at_owner_;  // (batch)
    struct UnderWay {
        sw::LayerFlight flight;
        std::int64_t batch;
        std::uint32_t number;  ///< among all that were started
    };
    std::deque<UnderWay> under_way_;
    std::uint32_t started_ = 0;
    std::vector<float> means_;  // with --pooling none
    std::vector<float> probabilities_;
    sw::TierTraffic put_;
    std::int64_t messages_ = 0;
};

}  // namespace infer_dlrm
