// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shardwise/core/at.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/steps/exchange_answers.hpp"
#include "shardwise/embedding/steps/vector_exchange.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

namespace detail {

/// What is said of wrong bags is cut off behind so many bytes.
inline constexpr std::int64_t most_text = 504;

/// Whether `owner` tells `source` the lengths of a feature's bags.
inline bool tells_lengths(const Placement& placement, const PlanPooling& pooling, int owner, int source, int feature) {
    return at(pooling.mean, feature) != 0 && !placement.has_part(source, feature) &&
           placement.owner(source, BlockPlace{.feature = feature, .shard = 0}) == owner;
}
/// The means of which a rank has no part.
inline std::int64_t told_features(const Placement& placement, const PlanPooling& pooling, int rank) {
    std::int64_t told = 0;
    for (int f = 0; f < static_cast<int>(placement.features.size()); ++f)
        told += at(pooling.mean, f) != 0 && !placement.has_part(rank, f) ? 1 : 0;
    return told;
}

}  // namespace detail

struct AnswerTape final : detail::VectorExchange {
    void begin(StepEnv& env, const Placement& placement, const PlanPooling& pooling, const Codec& codec, Lanes& lanes,
               std::pmr::memory_resource& memory) {
        env_ = &env;
        placement_ = &placement;
        pooling_ = &pooling;
        lanes_ = &lanes;
        leaving = lanes.vectors;
        coming = lanes.home;
        to_rank.clear();
        for (const VectorBlock& block : leaving)
            to_rank.push_back(block.head.source);
        from_rank.clear();
        for (const Head& head : coming)
            from_rank.push_back(head.owner);
        bind(env, codec, lanes, memory);
        samples_ = lanes.batch.samples();
        lengths_.on(memory).resize(
            static_cast<std::size_t>(samples_ * detail::told_features(placement, pooling, env.rank)));
        used_ = 0;
    }
    [[nodiscard]] PartSize size(int peer) override {
        const BatchShare& share = at(lanes_->shares, peer);
        if (!share.wrong.empty()) return {.payload = 0, .control = 8 + std::ssize(text_of(share))};
        PartSize part = VectorExchange::size(peer);
        part.control = 8;
        for_lengths(env_->rank, peer, [&](int) { part.control += 4 * share.batch.samples(); });
        return part;
    }
    void pack(int peer, ByteWriter& to) override {
        const BatchShare& share = at(lanes_->shares, peer);
        const std::string_view text = text_of(share);
        to.put(static_cast<std::uint32_t>(share.batch.samples()));
        to.put(static_cast<std::uint32_t>(text.size()));
        to.put(text.data(), std::ssize(text));
        if (!share.wrong.empty()) return;
        for_lengths(env_->rank, peer, [&](int feature) {
            for (std::int64_t i = 0; i < share.batch.samples(); ++i)
                to.put(static_cast<std::int32_t>(share.batch.length(feature, i)));
        });
        VectorExchange::pack(peer, to);
    }
    /// Not what it is as a rule: something may be wrong there.
    [[nodiscard]] std::int64_t expected(int) override { return PartSize::unknown; }
    void unpack(int peer, ByteReader& from) override {
        const auto samples = static_cast<std::int64_t>(from.get<std::uint32_t>());
        const auto bytes = static_cast<std::int64_t>(from.get<std::uint32_t>());
        std::string wrong;
        if (bytes != 0) {
            const char* const text = from.view<char>(bytes);
            if (text != nullptr) wrong.assign(text, static_cast<std::size_t>(bytes));
        } else if (samples != samples_) {
            wrong = concat({"rank ", env_->in_world(peer), " looked up ", samples, " samples of rank ",
                            env_->in_world(env_->rank), ", which says that it has ", samples_,
                            ": tell every rank the same numbers of samples, and start as many batches on all ranks"});
            if (!env_->errors_stay && env_->error.word() == 0) throw Mismatch{wrong};
        }
        if (wrong.empty()) {
            for_lengths(peer, env_->rank, [&](int feature) {
                const auto* const lengths = from.view<std::int32_t>(samples_);
                std::int32_t* const to = lengths_.data() + used_;
                used_ += samples_;
                if (lengths != nullptr) std::copy_n(lengths, samples_, to);
                lanes_->batch.set_lengths(feature, to);
            });
            return VectorExchange::unpack(peer, from);
        }
        env_->error.note(FlightError::bad_input, wrong);
        leave_out(peer, zeros_);
        if (bytes != 0) return;
        std::int64_t rest = bytes_from(peer, samples);
        for_lengths(peer, env_->rank, [&](int) { rest += 4 * samples; });
        static_cast<void>(from.view<std::byte>(rest));
    }

  private:
    [[nodiscard]] static std::string_view text_of(const BatchShare& share) {
        return std::string_view{share.wrong}.substr(0, static_cast<std::size_t>(detail::most_text));
    }
    template <class Use>
    void for_lengths(int owner, int source, Use use) const {
        for (int f = 0; f < static_cast<int>(placement_->features.size()); ++f)
            if (detail::tells_lengths(*placement_, *pooling_, owner, source, f)) use(f);
    }

    StepEnv* env_ = nullptr;
    const Placement* placement_ = nullptr;
    const PlanPooling* pooling_ = nullptr;
    Lanes* lanes_ = nullptr;
    std::int64_t samples_ = 0;      // of this rank
    Buffer<std::int32_t> lengths_;  // (mean of which this rank has no part, sample)
    std::int64_t used_ = 0;
    std::vector<float> zeros_;
};

namespace detail {

struct AnswersBody {
    using Tape = AnswerTape;
    using View = shardwise::View<Lanes, AnswersFamily::Tapes, AnswersFamily::Sees>;

    static Exchange& begin(StepEnv& env, View& view) {
        Tape& tape = view.tape<AnswerTape>();
        tape.begin(env, view.state<Placement>(), view.state<PlanPooling>(), view.state<Wires>().forward, view.lanes(),
                   *view.state<WorkMemory>().resource);
        return tape;
    }
    template <class Cost>
    static void memory(const CostEnv& env, const Cost& cost, int rank, MemoryTally& tally) {
        memory_of_hop(env, cost, rank, tally);
        tally.need(4 * cost.samples(rank) * told_features(*cost.placement, *cost.pooling, rank));
    }
    template <class Cost>
    static void shape(const CostEnv& env, Cost& cost, TrafficMatrixOf<typename Cost::Number>& round) {
        const Placement& placement = *cost.placement;
        for (int owner = 0; owner < cost.ranks(); ++owner)
            cost.for_sources(owner, [&](int source) {
                if (source == owner) return;
                std::int64_t control = 4 + 4;  // samples, bytes of a text
                for (int f = 0; f < static_cast<int>(placement.features.size()); ++f)
                    if (tells_lengths(placement, *cost.pooling, owner, source, f)) control += 4 * cost.samples(source);
                if (cost.says_what_is_wrong()) control += most_text;
                round.at(owner, source).control += control;
            });
        shape_of_hop(env, cost, round);
    }
};

}  // namespace detail

SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, AnswersFamily) {
    return code_from<EmbeddingDomain, detail::AnswersBody>();
}
SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, GradientsFamily<AnswerTape>) {
    return code_from<EmbeddingDomain, detail::GradientsBody<AnswerTape>>();
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
