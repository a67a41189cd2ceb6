// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory_resource>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/embedding/batch_view.hpp"
#include "shardwise/embedding/store.hpp"
#include "shardwise/optimizer/optimizer.hpp"
#include "shardwise/sharding/placement.hpp"

/// \file
/// The four lanes of an embedding plan: ids, vectors, rows, and the parameters they touch.

namespace shardwise::inline SHARDWISE_ABI {

/// What a block of a lane is about. All but `n` is a function of placement, topology and plan; `n` is data.
struct Head {
    int source = 0;   ///< the rank whose samples these are
    int feature = 0;  ///< number in the placement
    int shard = 0;
    int dim = 0;         ///< columns of the shard
    std::int64_t n = 0;  ///< ids: bags; vectors: rows
};

/// The ids of one (source, feature, shard).
struct IdBlock {
    Head head;
    std::int64_t ids = 0;
    const std::int32_t* lengths = nullptr;  ///< (n), or null: one id a bag, or no ids at all
    const LocalRow* rows = nullptr;         ///< (ids)
    const float* weights = nullptr;         ///< (ids), or null: each counts once

    [[nodiscard]] std::int64_t length(std::int64_t bag) const noexcept {
        return lengths != nullptr ? lengths[bag] : (ids == 0 ? 0 : 1);
    }
};

/// The vectors of one (source, feature, shard): n rows of `head.dim` elements.
struct VectorBlock {
    Head head;
    const float* data = nullptr;
    std::int64_t stride = 0;

    [[nodiscard]] const float* row(std::int64_t i) const noexcept { return data + i * stride; }
};

/// One term of a row's gradient: weight * gradient[0..dim), from a sample of rank `source`.
struct Contribution {
    const void* gradient = nullptr;  ///< floats; where partial sums are wider, between the levels of a tree, those
    float weight = 1.0F;
    std::int32_t source = 0;

    /// \tparam T  what the step before wrote
    template <class T>
    [[nodiscard]] const T* terms() const noexcept {
        return static_cast<const T*>(gradient);
    }
};

/// The touched rows of one shard, ascending, each with its contributions in the order of source, sample, feature, id.
struct RowSet {
    int slot = 0;  ///< the shard's number in the store
    int dim = 0;
    std::int64_t count = 0;
    const LocalRow* rows = nullptr;               ///< (count)
    const std::int64_t* first = nullptr;          ///< (count + 1): first contribution
    const Contribution* contributions = nullptr;  ///< (first[count])
    const double* sums_of_squares = nullptr;      ///< (count), of whole rows; null: each shard's own
};

/// One register a lane, and what all steps of a branch share.
struct Lanes {
    // bound once
    const Placement* placement = nullptr;
    Store* store = nullptr;
    std::pmr::memory_resource* memory = nullptr;
    const void* rule = nullptr;        ///< the SparseOptimizer that the plan's Update names
    const UpdateStep* step = nullptr;  ///< number and learning rate of the step that is being learnt
    // bound once, common to all branches of a flight
    BatchView* batch = nullptr;
    std::vector<MatrixView<float>>* output = nullptr;          ///< (feature of the layer)
    std::vector<MatrixView<const float>>* gradient = nullptr;  ///< (feature of the layer)
    // the lanes
    std::vector<IdBlock> ids;
    std::vector<VectorBlock> vectors;
    std::vector<RowSet> rows;
};

}  // namespace shardwise::inline SHARDWISE_ABI
