// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shardwise/checkpoint/layer_shards.hpp"
#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/core/jagged.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/optimizer/learning_rate.hpp"

/// \file
/// The embedding layer of the model behind a small interface: policies are types, and this program picks among them by
/// name at run time. The rest of the program is compiled once.

namespace train_dlrm {

namespace sw = shardwise;

/// The names of one policy of each axis.
struct Policies {
    std::string sharding = "row";
    std::string optimizer = "rowwise_adagrad";
    std::string pooling = "sum";
    std::string order = "tree";
    std::string wire_forward = "fp32";
    std::string wire_backward = "fp32";

    friend bool operator==(const Policies&, const Policies&) = default;
};

/// What an embedding layer is made of, besides its policies.
struct EmbeddingSetup {
    std::vector<sw::TableConfig> tables;
    sw::LearningRate learning_rate;
    std::uint64_t seed = 1;
    sw::MemoryAccount* memory = nullptr;
    sw::Tracer* tracer = nullptr;
};

/// An EmbeddingLayer whose policies are forgotten. Batches are looked up in the order in which they were started.
class Embedding {
  public:
    Embedding() = default;
    Embedding(const Embedding&) = delete;
    Embedding& operator=(const Embedding&) = delete;
    virtual ~Embedding() = default;

    /// Sends the ids of a batch on their way. Collective.
    virtual void start(const sw::JaggedView<std::int64_t>& batch) = 0;
    /// Looks up the batch that was started first. Collective. \returns (samples, features * dim)
    [[nodiscard]] virtual sw::MatrixView<const float> forward() = 0;
    /// Learns from the batch that was started first, and ends it. Collective.
    virtual void backward(const sw::MatrixView<const float>& gradient) = 0;
    /// Ends the batch that was started first, after its lookup, without learning.
    virtual void finish() = 0;

    /// What one step on these batches, one a rank, moves, and what its buffers need on this rank.
    [[nodiscard]] virtual sw::LayerCost predict_cost(const std::vector<sw::JaggedView<std::int64_t>>& batches,
                                                     sw::MemoryTally* tally) const = 0;
    /// The bytes of tables and moments on a rank.
    [[nodiscard]] virtual std::int64_t predict_static_bytes(int rank) const = 0;
    /// This rank's part of the tables, for checkpoints.
    [[nodiscard]] virtual sw::LayerShards shards() = 0;
    [[nodiscard]] virtual std::int64_t steps() const = 0;
    virtual void set_steps(std::int64_t steps) = 0;
    [[nodiscard]] virtual const sw::Program& program() const = 0;
    [[nodiscard]] virtual std::vector<std::string> branches() const = 0;
};

/// Checks that every name is one of its axis, and that the policies go together. \throws BadInput with one sentence
void check_policies(const Policies& policies);
/// What `--help` says about an axis: sharding, pooling, optimizer, order or wire.
[[nodiscard]] std::string axis_help(const std::string& axis);

/// The embedding layer with these policies.
/// \throws BadInput for a name that there is not, and for policies that do not go together
[[nodiscard]] std::unique_ptr<Embedding> make_embedding(const Policies& policies, sw::CommunicatorRef comm,
                                                        const EmbeddingSetup& setup);

}  // namespace train_dlrm
