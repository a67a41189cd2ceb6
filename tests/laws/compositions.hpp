// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/core/jagged.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/embedding/layer.hpp"

/// \file
/// Layers of any composition behind one interface, so that the laws are compiled once and each composition costs its
/// own code alone.

namespace laws {

namespace sw = shardwise;

/// A batch in whichever form a case asks for.
struct Batch {
    bool wide = true;
    sw::JaggedView<std::int32_t> narrow_view;
    sw::JaggedView<std::int64_t> wide_view;
};

/// What the laws ask of a layer. Results and gradients are one matrix a feature.
class AnyLayer {
  public:
    using Matrices = std::vector<sw::MatrixView<const float>>;
    virtual ~AnyLayer() = default;
    virtual void start(const Batch& batch) = 0;  ///< flights queue up
    virtual void poll() = 0;                     ///< progress on every flight
    virtual Matrices forward() = 0;              ///< of the oldest flight that was not looked up
    virtual void backward(const Matrices& gradient) = 0;
    virtual sw::LayerCost predict(const std::vector<Batch>& batches, sw::MemoryTally& tally) = 0;
    virtual std::int64_t predict_static_bytes(int rank) = 0;
    virtual void for_each_shard(
        const std::function<void(const sw::ShardView&, const std::function<std::int64_t(std::int64_t)>&)>& use) = 0;
    virtual sw::MemoryAccount& memory() = 0;
};

/// The axes that are types; the names are those of the policies.
struct Composition {
    std::string sharding;
    std::string pooling;
    std::string optimizer;
    std::string forward_wire = "fp32";
    std::string backward_wire = "fp32";
    std::string order = "tree";
    std::function<std::unique_ptr<AnyLayer>(sw::CommunicatorRef, std::vector<sw::TableConfig>, float learning_rate,
                                            std::uint64_t seed)>
        make;

    [[nodiscard]] std::string name() const {
        return sharding + "/" + pooling + "/" + optimizer + "/" + forward_wire + "-" + backward_wire + "/" + order;
    }
};

/// Every composition that the laws run over.
[[nodiscard]] std::vector<Composition> all_compositions();

}  // namespace laws
