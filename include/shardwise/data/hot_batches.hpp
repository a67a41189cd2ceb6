// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/data/batch.hpp"
#include "shardwise/data/global_batches.hpp"
#include "shardwise/data/sample_queue.hpp"
#include "shardwise/data/sizes_ahead.hpp"
#include "shardwise/embedding/runtime/blueprint.hpp"
#include "shardwise/embedding/runtime/layer_base.hpp"
#include "shardwise/embedding/runtime/traits.hpp"
#include "shardwise/sharding/row_map.hpp"

/// \file
/// Batches of one kind: samples all of whose rows every rank has, and others (SCARS, hot mini-batches).

namespace shardwise::inline SHARDWISE_ABI {

/// Which samples a layer's hot batches may have.
class HotRows {
  public:
    /// \throws BadInput for a layer whose first tier is not on every rank, or has no row at all
    explicit HotRows(const LayerBlueprint& layer) {
        static_cast<void>(layer.traits().program_of(BatchKind::hot));
        std::int64_t rows = 0;
        for (const TableConfig& table : layer.tables()) {
            const auto of_table = [&](const RowTiers::Feature& feature) { return feature.table == table.name; };
            const auto& all = layer.row_tiers().features;
            const auto found = std::find_if(all.begin(), all.end(), of_table);
            rows += found->map->rows(0);
            maps_.insert(maps_.end(), features_of(table).size(), found->map);
        }
        if (rows == 0)
            throw BadInput{
                "hot batches with a row plan that replicates no row: give a plan with rows in the first tier, or leave "
                "hot batches out"};
    }

    explicit HotRows(const LayerBase& layer) : HotRows{layer.blueprint()} {}

    /// Whether every rank has the row. An id that is no row is not hot: what its batch looks up finds it wrong.
    [[nodiscard]] bool operator()(std::int64_t feature, std::int64_t id) const {
        const RowMap& map = *maps_[static_cast<std::size_t>(feature)];
        return id >= 0 && id < map.rows() && map.tier(id) == 0;
    }
    /// Whether every rank has all rows of a sample.
    [[nodiscard]] bool operator()(const SampleCursor& at) const {
        for (std::int64_t f = 0; f < at.batch().ids.features; ++f)
            for (const std::int64_t id : at.bag(f))
                if (!(*this)(f, id)) return false;
        return true;
    }

  private:
    std::vector<std::shared_ptr<const RowMap>> maps_;  // (feature)
};

/// In which order batches of the two kinds come.
enum class HotOrder : std::uint8_t {
    spread,  ///< in proportion to how many samples of each wait
    first    ///< hot ones before all others: the data is read twice
};

/// How large batches are, and in which order they come.
struct HotBatchesOptions {
    std::int64_t batch = 1;      ///< samples a rank of a batch of others
    std::int64_t hot_batch = 1;  ///< of a hot one; may be larger, since it moves nothing for its samples
    HotOrder order = HotOrder::spread;
};

namespace detail {

/// A queue of each kind, hot ones first, as the ranks tell each other.
struct WaitingSamples {
    std::array<std::int64_t, 2> samples{};  // (kind)
};

/// The kind of the next batch; none when nothing waits. Kinds are numbered: others 0, hot ones 1. That which fills more
/// of a batch of all ranks, or else of the batches behind it; but one whose queue is full on some rank goes before one
/// whose queues are not, as that rank cannot read on, and where both are so, not the last one again.
[[nodiscard]] inline std::optional<int> next_kind(std::span<const WaitingSamples> ranks,
                                                  const std::array<std::int64_t, 2>& batch,
                                                  const std::array<std::int64_t, 2>& most, int last) {
    std::array<double, 2> filled{};   // of a batch
    std::array<double, 2> waiting{};  // in batches
    std::array<bool, 2> full{};
    for (const WaitingSamples& rank : ranks)
        for (std::size_t kind = 0; kind < 2; ++kind) {
            const double batches = static_cast<double>(rank.samples[kind]) / static_cast<double>(batch[kind]);
            filled[kind] += std::min(1.0, batches);
            waiting[kind] += batches;
            full[kind] = full[kind] || rank.samples[kind] >= most[kind];
        }
    if (filled[0] == 0 && filled[1] == 0) return std::nullopt;
    if (full[0] && full[1]) return 1 - last;
    if (full[0] != full[1]) return full[1] ? 1 : 0;
    return filled[1] != filled[0] ? (filled[1] > filled[0] ? 1 : 0) : (waiting[1] > waiting[0] ? 1 : 0);
}

}  // namespace detail

/// Sorts this rank's samples into hot ones and others, and gives all ranks batches of one kind at a time: as
/// GlobalBatches, with kind(). Every sample is in one batch; a rank that has none of the kind gets an empty one.
///
/// Ranks agree on the next kind by the numbers of samples that wait, which travel with the sizes of batches, one batch
/// ahead; all ranks know them before they begin a pass, from a message more. Which batches come, and what is in them,
/// follows from the data of all ranks, the rows that are hot, and the options.
///
/// Memory: at most four batches of each kind wait, and one that the loader lends; of HotOrder::first one batch and one.
/// Cost: 24 bytes to each other rank a batch, and once more a pass (HotOrder::first: two passes). One instance a rank;
/// not thread safe.
template <BatchLoader Loader>
class HotBatches : public detail::SizesAhead<3> {
  public:
    /// Not collective.
    /// \param loader  of this rank's part of the data, of any sizes; outlives this
    /// \param dense_columns, features  of an empty batch
    /// \throws BadInput for batches below one sample
    HotBatches(CommunicatorRef comm, Loader& loader, HotRows hot, const HotBatchesOptions& options,
               std::int64_t dense_columns, std::int64_t features)
        : SizesAhead{comm},
          loader_{&loader},
          hot_{std::move(hot)},
          order_{options.order},
          batch_{options.batch, options.hot_batch},
          dense_columns_{dense_columns},
          features_{features} {
        for (const std::int64_t samples : batch_)
            if (samples < 1) throw BadInput{concat({"a batch of ", samples, " samples: give at least 1"})};
    }

    /// Back to the beginning of the data, not between announce() and global_samples(). Not collective, but all ranks do
    /// it at the same batch.
    void rewind() {
        start_over();
        begin_pass(0);
        last_ = 0;
    }
    /// As GlobalBatches::announce. Collective; waits for the other ranks when a pass over the data begins.
    bool announce(ClickBatch& batch) {
        if (!agreed_) agree();
        const Seconds measured = measure_input();
        batch.resize_single(0, dense_columns_, features_);
        kind_ = next_.value_or(0);
        if (next_) take(batch);
        fill();
        const auto [others, hot] = waiting().samples;
        tell({!can_read() ? unreadable : next_ ? batch.samples() : ended, others, hot});
        return next_.has_value();
    }
    /// Of the batch that was announced last; the same on every rank.
    [[nodiscard]] BatchKind kind() const noexcept { return kind_ == 1 ? BatchKind::hot : BatchKind::any; }
    /// The number of samples of the announced batch over all ranks; waits for the others' numbers. Collective.
    /// \returns 0 when the data has ended
    [[nodiscard]] std::int64_t global_samples() {
        const Seconds measured = measure_sync();
        std::int64_t sum = 0;
        const std::vector<Numbers> all = hear_and_choose();
        for (std::size_t rank = 0; rank < all.size(); ++rank)
            sum += hear_of(rank, all[rank][0]);
        return sum;
    }

    /// How often ranks have told each other their numbers when a pass began, beside announcements.
    [[nodiscard]] std::int64_t passes() const noexcept { return passes_; }
    /// Samples that wait on this rank.
    [[nodiscard]] std::int64_t waiting_samples() const noexcept { return queues_[0].size() + queues_[1].size(); }

  private:
    static constexpr std::int64_t depth = 4;  // batches of a kind that may wait

    [[nodiscard]] detail::WaitingSamples waiting() const { return {{queues_[0].size(), queues_[1].size()}}; }
    [[nodiscard]] std::array<std::int64_t, 2> most() const { return {depth * batch_[0], depth * batch_[1]}; }
    /// Whether the pass is over the samples of that kind.
    [[nodiscard]] bool wanted(int kind) const { return order_ == HotOrder::spread || kind == 1 - pass_; }

    /// \param pass  of the data; with HotOrder::first the first is of hot samples
    void begin_pass(int pass) {
        pass_ = pass;
        ended_ = false;
        agreed_ = false;
        for (SampleQueue& queue : queues_)
            queue.clear();
        if (touched_) loader_->rewind();
    }
    /// Before the first batch of a pass.
    void agree() {
        {
            const Seconds measured = measure_input();
            fill();
        }
        const Seconds measured = measure_sync();
        const auto [others, hot] = waiting().samples;
        tell({0, others, hot});
        static_cast<void>(hear_and_choose());
        ++passes_;
        agreed_ = true;
        if (!next_ && order_ == HotOrder::first && pass_ == 0) {  // there is no hot sample
            begin_pass(1);
            agree();
        }
    }
    std::vector<Numbers> hear_and_choose() {
        std::vector<Numbers> all = hear();
        std::vector<detail::WaitingSamples> ranks;
        for (const Numbers& rank : all)
            ranks.push_back({{rank[1], rank[2]}});
        next_ = detail::next_kind(ranks, batch_, most(), last_);
        if (next_) last_ = *next_;
        const bool over = !next_ && agreed_ && order_ == HotOrder::first && pass_ == 0;
        if (over) begin_pass(1);
        return all;
    }
    /// Reads until a batch of each kind that is wanted waits, or a queue is full.
    void fill() {
        const auto filled = [&](int kind, std::int64_t batches) {
            return queues_[static_cast<std::size_t>(kind)].size() >= batches * batch_[static_cast<std::size_t>(kind)];
        };
        const auto enough = [&] {
            return ((!wanted(0) || filled(0, 1)) && (!wanted(1) || filled(1, 1))) || filled(0, depth) ||
                   filled(1, depth);
        };
        touched_ = true;
        try {
            while (!ended_ && !enough()) {
                const ClickBatch* batch = loader_->next();
                ended_ = batch == nullptr;
                if (batch != nullptr) sort(*batch);
            }
        } catch (const BadInput& error) {
            cannot_read(error.what());
            ended_ = true;
        }
    }
    void sort(const ClickBatch& batch) {
        for (SampleCursor at{batch}; at.sample() < batch.samples(); at.next())
            if (const int kind = hot_(at) ? 1 : 0; wanted(kind)) queues_[static_cast<std::size_t>(kind)].push(at);
    }
    void take(ClickBatch& batch) {
        const auto kind = static_cast<std::size_t>(*next_);
        const std::int64_t samples = std::min(queues_[kind].size(), batch_[kind]);
        if (samples != 0) queues_[kind].take(samples, batch);
    }

    Loader* loader_;
    HotRows hot_;
    HotOrder order_;
    std::array<std::int64_t, 2> batch_;  // (kind): samples
    std::int64_t dense_columns_;
    std::int64_t features_;
    std::array<SampleQueue, 2> queues_;  // (kind)
    std::optional<int> next_;            // kind of the next batch; none: the data has ended
    int kind_ = 0;                       // of the announced one
    int last_ = 0;                       // kind that was chosen last
    int pass_ = 0;
    std::int64_t passes_ = 0;
    bool agreed_ = false;   // next_ is known
    bool ended_ = false;    // nothing is left to read in this pass
    bool touched_ = false;  // the loader has lent something
};

}  // namespace shardwise::inline SHARDWISE_ABI
