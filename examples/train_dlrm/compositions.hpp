// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/mp11.hpp>

#include "embedding.hpp"
#include "policies.hpp"
#include "shardwise/checkpoint/layer_shards.hpp"
#include "shardwise/embedding/layer.hpp"

/// \file
/// What a translation unit of compositions instantiates.

namespace train_dlrm {

/// An EmbeddingLayer as an Embedding.
template <class Layer>
class EmbeddingOf final : public Embedding {
  public:
    EmbeddingOf(sw::CommunicatorRef comm, const EmbeddingSetup& setup)
        : layer_{comm,
                 setup.tables,
                 {.rule = {},
                  .learning_rate = setup.learning_rate,
                  .seed = setup.seed,
                  .memory = setup.memory,
                  .tracer = setup.tracer}} {}

    void start(const sw::JaggedView<std::int64_t>& batch) override { flights_.push_back(layer_.start(batch)); }
    sw::MatrixView<const float> forward() override { return layer_.forward(flights_.front()); }
    void backward(const sw::MatrixView<const float>& gradient) override {
        layer_.backward(std::move(flights_.front()), gradient);
        flights_.pop_front();
    }
    void finish() override { flights_.pop_front(); }

    sw::LayerCost predict_cost(const std::vector<sw::JaggedView<std::int64_t>>& batches,
                               sw::MemoryTally* tally) const override {
        return layer_.predict_cost(batches, tally);
    }
    std::int64_t predict_static_bytes(int rank) const override { return layer_.predict_static_bytes(rank); }
    sw::LayerShards shards() override { return sw::shards_of(layer_); }
    std::int64_t steps() const override { return layer_.steps(); }
    void set_steps(std::int64_t steps) override { layer_.set_steps(steps); }
    const sw::Program& program() const override { return layer_.program(); }
    std::vector<std::string> branches() const override { return Layer::branches(); }

  private:
    Layer layer_;
    std::deque<typename Layer::Flight> flights_;
};

template <class S, class P>
std::unique_ptr<Embedding> make_composition(const Policies& policies, sw::CommunicatorRef comm,
                                            const EmbeddingSetup& setup) {
    std::unique_ptr<Embedding> made;
    mp::mp_for_each<mp::mp_transform<mp::mp_identity, Compositions<S, P>>>([&](auto identity) {
        using C = typename decltype(identity)::type;
        if (C::names() == policies) made = std::make_unique<EmbeddingOf<typename C::Layer>>(comm, setup);
    });
    return made;
}

}  // namespace train_dlrm
