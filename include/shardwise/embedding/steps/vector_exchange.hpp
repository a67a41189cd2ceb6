// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <tuple>
#include <utility>
#include <vector>

#include "shardwise/comm/wire.hpp"
#include "shardwise/core/at.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/bytes.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/embedding/lanes/blocks.hpp"
#include "shardwise/embedding/lanes/lanes.hpp"
#include "shardwise/embedding/lanes/route.hpp"
#include "shardwise/embedding/steps/exchange_vectors.hpp"
#include "shardwise/plan/memory.hpp"
#include "shardwise/plan/step.hpp"
#include "shardwise/plan/view.hpp"

/// \file
/// What all exchanges of vectors have in common, there and back.

namespace shardwise::inline SHARDWISE_ABI::steps {

namespace detail {

/// Vectors that arrived: in place where the wire is exact, decoded into memory of one's own otherwise.
class Arrivals {
  public:
    void begin(const Codec& codec, std::pmr::memory_resource& memory, std::int64_t elements, int words) {
        codec_ = &codec;
        words_ = words;
        decoded_.on(memory).resize(codec.exact ? 0 : static_cast<std::size_t>(elements));
        used_ = 0;
    }
    /// Reads head.n rows of a message.
    VectorBlock read(const Head& head, ByteReader& from) {
        const std::int64_t count = head.n * head.dim * words_;
        if (codec_->exact) return rows_in_memory(head, from.view<float>(count), words_);
        float* to = take(count);
        const auto* bytes = from.view<std::byte>(count * codec_->bytes);
        if (bytes != nullptr) codec_->decode(bytes, to, count);
        return rows_in_memory(head, to);
    }
    /// A block that stays on this rank is rounded as if it had travelled.
    VectorBlock keep(const VectorBlock& block) {
        if (codec_->exact) return block;
        const std::int64_t dim = block.head.dim;
        float* to = take(block.head.n * dim);
        block.write(to, dim);
        codec_->round(to, block.head.n * dim);
        return rows_in_memory(block.head, to);
    }

  private:
    float* take(std::int64_t count) {
        float* here = decoded_.data() + used_;
        used_ += count;
        SHARDWISE_ASSERT(used_ <= std::ssize(decoded_.span()));
        return here;
    }
    const Codec* codec_ = nullptr;
    int words_ = 1;
    Buffer<float> decoded_;
    std::int64_t used_ = 0;
};

/// One way of vectors through an exchange: what leaves, what comes, and where it is then.
class VectorExchange : public Exchange {
  public:
    std::vector<VectorBlock> leaving;  // in the order of the lane
    std::vector<int> to_rank;          // of each
    std::vector<Head> coming;          // in the order of the lane behind the exchange
    std::vector<int> from_rank;        // of each

    /// `leaving`, `coming` and their ranks are there. \param words  floats a column; a wire that rounds knows one
    void bind(const StepEnv& env, const Codec& codec, Lanes& lanes, std::pmr::memory_resource& memory, int words = 1) {
        SHARDWISE_ASSERT(words == 1 || codec.exact);
        rank_ = env.rank;
        codec_ = &codec;
        words_ = words;
        lanes_ = &lanes;
        to_.assign(env.topology.ranks(), leaving.size(), [&](std::size_t i) { return to_rank[i]; });
        from_.assign(env.topology.ranks(), coming.size(), [&](std::size_t i) { return from_rank[i]; });
        arrived_.assign(coming.size(), {});
        std::int64_t elements = 0;
        for (const Head& head : coming)
            elements += head.n * head.dim;
        arrivals_.begin(codec, memory, elements, words);
        std::int64_t most = 0;
        for (const VectorBlock& block : leaving)
            if (!codec.exact && block.are == VectorsAre::bag_sums) most = std::max(most, tile_elements(block.head.dim));
        tile_.on(memory).resize(static_cast<std::size_t>(most));
    }
    [[nodiscard]] PartSize size(int peer) override {
        PartSize part;
        for (const std::size_t i : to_.of(peer))
            part.payload += bytes_of(leaving[i].head);
        return part;
    }
    void pack(int peer, ByteWriter& message) override {
        for (const std::size_t i : to_.of(peer))
            put(message, leaving[i]);
    }
    [[nodiscard]] std::int64_t expected(int peer) override {
        std::int64_t bytes = 0;
        for (const std::size_t i : from_.of(peer))
            bytes += bytes_of(coming[i]);
        return bytes;
    }
    void unpack(int peer, ByteReader& message) override {
        for (const std::size_t i : from_.of(peer))
            arrived_[i] = arrivals_.read(coming[i], message);
    }
    /// Takes over the blocks that stay on this rank.
    void end() override {
        const auto mine = to_.of(rank_);
        const auto here = from_.of(rank_);
        SHARDWISE_ASSERT(mine.size() == here.size());
        for (std::size_t k = 0; k < mine.size(); ++k)
            arrived_[here[k]] = arrivals_.keep(leaving[mine[k]]);
        lanes_->vectors = arrived_;
    }

  protected:
    /// Stands in for what a peer does not send: rows of zeros.
    void leave_out(int peer, std::vector<float>& zeros) {
        int widest = 0;
        for (const Head& head : coming)
            widest = std::max(widest, head.dim);
        zeros.resize(static_cast<std::size_t>(widest));
        for (const std::size_t i : from_.of(peer)) {
            arrived_[i] = rows_in_memory(coming[i], zeros.data());
            arrived_[i].stride = 0;
        }
    }
    /// Bytes of the blocks from a peer, were it so many rows of each.
    [[nodiscard]] std::int64_t bytes_from(int peer, std::int64_t rows) const {
        std::int64_t bytes = 0;
        for (const std::size_t i : from_.of(peer))
            bytes += rows * coming[i].dim * words_ * codec_->bytes;
        return bytes;
    }

  private:
    [[nodiscard]] std::int64_t bytes_of(const Head& head) const { return head.n * head.dim * words_ * codec_->bytes; }
    /// Appends a block's rows in the wire's precision. Sums that are yet to be looked up go straight into the message
    /// where the wire is exact, through a tile otherwise.
    void put(ByteWriter& message, const VectorBlock& block) {
        const std::int64_t dim = block.head.dim;
        std::byte* const first = message.skip(static_cast<std::size_t>(bytes_of(block.head)));
        const auto row_at = [&](std::int64_t i) { return first + i * dim * codec_->bytes; };
        if (codec_->exact) {
            block.write(reinterpret_cast<float*>(first), block.width());
        } else if (block.are == VectorsAre::bag_sums) {
            RowReader reader{block};
            const std::int64_t most = tile_rows(block.head.dim);
            for (std::int64_t i = 0; i < block.head.n; i += most) {
                const std::int64_t count = std::min(most, block.head.n - i);
                reader.next(count, tile_.data());
                codec_->encode(tile_.data(), row_at(i), count * dim);
            }
        } else if (block.is_dense()) {
            codec_->encode(block.data, first, block.head.n * dim);
        } else {
            for (std::int64_t i = 0; i < block.head.n; ++i)
                codec_->encode(block.row_or_table_row(i), row_at(i), dim);
        }
    }

    int rank_ = 0;
    int words_ = 1;
    const Codec* codec_ = nullptr;
    Lanes* lanes_ = nullptr;
    Route to_;
    Route from_;
    std::vector<VectorBlock> arrived_;  // as `coming`
    Arrivals arrivals_;
    Buffer<float> tile_;  // where rows are looked up and do not stay
};

}  // namespace detail

/// The tape of the adjoint of a hop.
struct GradientTape final : detail::VectorExchange {};

namespace detail {

/// What a hop needs beside its messages.
template <class Cost>
void memory_of_hop(const CostEnv& env, const Cost& cost, int rank, MemoryTally& tally) {
    const bool exact = cost.wires->forward.exact;
    typename Cost::Number elements = 0;
    std::int64_t tile = 0;
    for (int holder = 0; holder < cost.ranks(); ++holder)
        for (const auto& block : at(cost.vectors, holder)) {
            if (env.group.toward(holder, block.head.source) == rank) elements += block.n * block.head.dim;
            if (holder == rank && !block.looked_up && cost.pooling->pooled)
                tile = std::max(tile, tile_elements(block.head.dim));
        }
    tally.need(exact ? 0 : 4 * rounded_up(elements));
    tally.need(exact ? 0 : 4 * tile);
}

/// What a hop moves, and where vectors are behind it.
template <class Cost>
void shape_of_hop(const CostEnv& env, Cost& cost, TrafficMatrixOf<typename Cost::Number>& round) {
    const Codec& codec = cost.wires->forward;
    typename Cost::Blocks next(static_cast<std::size_t>(cost.ranks()));
    for (int holder = 0; holder < cost.ranks(); ++holder)
        Cost::for_features(at(cost.vectors, holder), [&](auto blocks) {
            const int to = env.group.toward(holder, blocks.front().head.source);
            if (to != holder) round.at(holder, to).payload += cost.elements_of(blocks) * codec.bytes;
            for (auto block : blocks) {
                block.looked_up |= to != holder || !codec.exact;
                at(next, to).push_back(block);
            }
        });
    const auto key = [](const auto& block) {
        return std::tuple{block.head.source, block.head.feature, block.head.shard};
    };
    for (auto& blocks : next)
        std::sort(blocks.begin(), blocks.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
    cost.step_on(std::move(next));
}

/// The adjoint of a hop. \tparam ForwardTape  the hop's
template <class ForwardTape>
struct GradientsBody {
    using Tape = GradientTape;
    using View = shardwise::View<Lanes, typename GradientsFamily<ForwardTape>::Tapes,
                                 typename GradientsFamily<ForwardTape>::Sees>;

    static Exchange& begin(StepEnv& env, View& view) {
        Tape& tape = view.template tape<GradientTape>();
        const ForwardTape& forward = view.template tape<ForwardTape>();
        tape.leaving = view.lanes().vectors;
        SHARDWISE_ASSERT(tape.leaving.size() == forward.coming.size());
        tape.to_rank = forward.from_rank;
        tape.from_rank = forward.to_rank;
        tape.coming.clear();
        for (const VectorBlock& block : forward.leaving)
            tape.coming.push_back(block.head);
        tape.bind(env, view.template state<Wires>().backward, view.lanes(), *view.template state<WorkMemory>().resource,
                  view.template state<PlanPooling>().words);
        return tape;
    }
    template <class Cost>
    static void memory(const CostEnv&, const Cost& cost, int rank, MemoryTally& tally) {
        const bool exact = cost.wires->backward.exact;
        tally.need(exact ? 0 : 4 * rounded_up(Cost::elements(at(cost.trail.back(), rank))));
        tally.need(0);  // gradients are in memory: no tile
    }
    template <class Cost>
    static void shape(const CostEnv& env, Cost& cost, TrafficMatrixOf<typename Cost::Number>& round) {
        cost.step_back();
        for (int sender = 0; sender < cost.ranks(); ++sender)
            Cost::for_features(at(cost.vectors, sender), [&](auto blocks) {
                const int holder = env.group.toward(sender, blocks.front().head.source);
                if (holder != sender)
                    round.at(holder, sender).payload +=
                        cost.elements_of(blocks) * (cost.pooling->words * cost.wires->backward.bytes);
            });
    }
};

}  // namespace detail

}  // namespace shardwise::inline SHARDWISE_ABI::steps
