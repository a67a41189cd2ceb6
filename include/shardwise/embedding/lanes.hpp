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

/// The gradient of one touched row: contributions [first, end) of a RowSet.
struct RowTerms {
    LocalRow row = 0;
    std::int64_t first = 0;
    std::int64_t end = 0;
    bool several = false;  ///< they are among the sorted ones
};

/// The touched rows of one shard, each once, and what contributes to them. Contributions are numbered in the order of
/// source, sample, feature and id. Rows with one of them come first, in the order of these; the others ascend.
struct RowSet {
    int slot = 0;                                 ///< number of the shard in the store
    int dim = 0;                                  ///< columns of the shard
    const LocalRow* rows = nullptr;               ///< (contributions), by number
    const Contribution* contributions = nullptr;  ///< (contributions), by number
    std::int64_t singles = 0;
    const std::uint32_t* single = nullptr;  ///< (singles), ascending: numbers
    std::int64_t count = 0;
    const std::uint64_t* keys = nullptr;      ///< (count), ascending: row << 32 | number, of rows with several
    const double* sums_of_squares = nullptr;  ///< (touched rows), of whole rows; null: each shard's own

    [[nodiscard]] LocalRow row(std::int64_t k) const noexcept { return static_cast<LocalRow>(keys[k] >> 32U); }
    /// The k-th sorted one.
    [[nodiscard]] const Contribution& sorted(std::int64_t k) const noexcept {
        return contributions[keys[k] & 0xffffffffU];
    }
    /// Calls use(RowTerms) for every touched row.
    template <class Use>
    void for_rows(Use use) const {
        for (std::int64_t i = 0; i < singles; ++i)
            use(RowTerms{.row = rows[single[i]], .first = i, .end = i + 1, .several = false});
        for_several(use);
    }
    /// For those with several contributions.
    template <class Use>
    void for_several(Use use) const {
        for (std::int64_t k = 0; k < count;) {
            const LocalRow here = row(k);
            std::int64_t end = k + 1;
            while (end < count && row(end) == here)
                ++end;
            use(RowTerms{.row = here, .first = k, .end = end, .several = true});
            k = end;
        }
    }
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
