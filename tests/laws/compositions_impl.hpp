// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <deque>
#include <utility>

#include "laws/compositions.hpp"
#include "shardwise/optimizer/adagrad.hpp"
#include "shardwise/optimizer/adam.hpp"
#include "shardwise/optimizer/rowwise_adagrad.hpp"
#include "shardwise/optimizer/sgd.hpp"
#include "shardwise/sharding/col.hpp"
#include "shardwise/sharding/dp.hpp"
#include "shardwise/sharding/row.hpp"
#include "shardwise/sharding/table.hpp"

/// \file
/// One composition behind AnyLayer, and the compositions of one sharding and pooling.

namespace laws {

template <class Layer>
class Holder final : public AnyLayer {
  public:
    Holder(sw::CommunicatorRef comm, std::vector<sw::TableConfig> tables, const typename Layer::Options& options)
        : layer_{comm, std::move(tables), options} {}

    void start(const Batch& batch) override {
        flights_.push_back(batch.wide ? layer_.start(batch.wide_view) : layer_.start(batch.narrow_view));
    }
    void poll() override {
        for (auto& flight : flights_)
            flight.poll();
    }
    Matrices forward() override {
        Matrices all;
        try {
            const auto result = layer_.forward(flights_.at(looked_up_));
            if constexpr (Layer::pooled) {
                std::int64_t first = 0;
                for (const auto& table : layer_.tables())
                    for (std::size_t f = 0; f < sw::features_of(table).size(); ++f) {
                        all.push_back(result.columns_from(first, table.dim));
                        first += table.dim;
                    }
            } else {
                all.assign(result.begin(), result.end());
            }
        } catch (...) {
            flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(looked_up_));
            throw;
        }
        ++looked_up_;
        return all;
    }
    void backward(const Matrices& gradient) override {
        auto flight = std::move(flights_.front());
        flights_.pop_front();
        --looked_up_;
        if constexpr (Layer::pooled) {
            layer_.backward(std::move(flight),
                            {gradient.at(0).data(), gradient.at(0).rows(), layer_.width(), gradient.at(0).stride()});
        } else {
            layer_.backward(std::move(flight), gradient);
        }
    }
    sw::LayerCost predict(const std::vector<Batch>& batches, sw::MemoryTally& tally) override {
        if (batches.at(0).wide) {
            std::vector<sw::JaggedView<std::int64_t>> views;
            for (const Batch& batch : batches)
                views.push_back(batch.wide_view);
            return layer_.predict_cost(views, &tally);
        }
        std::vector<sw::JaggedView<std::int32_t>> views;
        for (const Batch& batch : batches)
            views.push_back(batch.narrow_view);
        return layer_.predict_cost(views, &tally);
    }
    void for_each_shard(const std::function<void(const sw::ShardView&,
                                                 const std::function<std::int64_t(std::int64_t)>&)>& use) override {
        layer_.for_each_shard([&](const sw::ShardView& shard, const auto& row) { use(shard, row); });
    }
    std::int64_t predict_static_bytes(int rank) override { return layer_.predict_static_bytes(rank); }
    sw::MemoryAccount& memory() override { return layer_.memory(); }

  private:
    Layer layer_;
    std::deque<typename Layer::Flight> flights_;
    std::size_t looked_up_ = 0;
};

template <class S, class P, class Rule, class W, class O>
Composition composition() {
    using Layer = sw::EmbeddingLayer<sw::Sharding<S>, sw::Pooling<P>, sw::Optimizer<Rule>, W, sw::Order<O>>;
    return {
        .sharding = S::name,
        .pooling = P::name,
        .optimizer = Rule::name,
        .forward_wire = W::forward::name,
        .backward_wire = W::backward::name,
        .order = O::name,
        .make = [](sw::CommunicatorRef comm, std::vector<sw::TableConfig> tables, float rate,
                   std::uint64_t seed) -> std::unique_ptr<AnyLayer> {
            return std::make_unique<Holder<Layer>>(
                comm, std::move(tables),
                typename Layer::Options{
                    .rule = {}, .learning_rate = {.base = rate}, .seed = seed, .memory = nullptr, .tracer = nullptr});
        }};
}

/// Every optimizer with exact wires along the tree, and other wires and orders so that every pair of values meets.
template <class S, class P, bool Replicated>
std::vector<Composition> compositions() {
    using Exact = sw::Wire<sw::Fp32>;
    using Lossy = sw::Wire<sw::Bf16>;
    using LossyBack = sw::Wire<sw::Fp32, sw::Bf16>;
    std::vector<Composition> all{composition<S, P, sw::Sgd, Exact, sw::Tree>(),
                                 composition<S, P, sw::Adagrad, Exact, sw::Tree>(),
                                 composition<S, P, sw::RowwiseAdagrad<>, Exact, sw::Tree>(),
                                 composition<S, P, sw::RowwiseAdagrad<sw::MeanOfSquares>, Exact, sw::Tree>(),
                                 composition<S, P, sw::Adam, Exact, sw::Tree>()};
    if constexpr (Replicated) {
        all.push_back(composition<S, P, sw::Adagrad, LossyBack, sw::Tree>());
    } else {
        all.push_back(composition<S, P, sw::Adagrad, Exact, sw::Sample>());
        all.push_back(composition<S, P, sw::RowwiseAdagrad<>, Lossy, sw::Sample>());
        all.push_back(composition<S, P, sw::Adam, Lossy, sw::Tree>());
        all.push_back(composition<S, P, sw::Sgd, LossyBack, sw::Tree>());
    }
    return all;
}

}  // namespace laws
