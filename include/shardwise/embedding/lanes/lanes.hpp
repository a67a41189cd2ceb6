// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <vector>

#include "shardwise/core/at.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/embedding/kernels/row_set.hpp"
#include "shardwise/embedding/lanes/batch.hpp"
#include "shardwise/embedding/lanes/blocks.hpp"

/// \file
/// The registers of an embedding plan: what its steps hand to each other.

namespace shardwise::inline SHARDWISE_ABI::steps {

/// One register a lane, and what goes in and comes out.
struct Lanes {
    // what the plan is given; features are numbered as in its placement
    BatchView batch;
    /// (rank of the group): with Ids<AtOwner> the batch has all ranks' samples, until its first step has dealt them,
    /// and then this rank's. Empty: it has this rank's.
    std::vector<BatchShare> shares;
    std::vector<MatrixView<float>> output;          ///< (feature; behind modules, tower): where results are wanted
    std::vector<MatrixView<const float>> gradient;  ///< as output
    /// (feature): the sum of squares of each row of its gradient; null: nobody has made them. Empty: null for all.
    std::vector<const double*> squares;
    /// (feature): of a sequence, which rows of output and gradient are those of the batch's ids; null: 0, 1, 2, ...
    /// Empty: null for all.
    std::vector<const std::int32_t*> places;
    /// (id of the batch): how many ids of bags it stands for; null: one
    const std::uint32_t* times = nullptr;
    // the lanes
    std::vector<IdBlock> ids;
    std::vector<VectorBlock> vectors;
    std::vector<RowSet> rows;
    // the vectors that this rank will have, in their order
    std::vector<Head> relayed;  ///< on their way to other ranks: by source, feature and shard
    std::vector<Head> home;     ///< of its own samples: by feature and shard; behind modules, by tower

    /// The places of a feature.
    [[nodiscard]] const std::int32_t* places_of(int feature) const {
        return places.empty() ? nullptr : at(places, feature);
    }
    /// The sums of squares of a feature.
    [[nodiscard]] const double* squares_of(int feature) const {
        return squares.empty() ? nullptr : at(squares, feature);
    }
    /// Takes over whose samples there are, before they are dealt.
    void share_as(const Lanes& other) {
        shares.resize(other.shares.size());
        for (std::size_t i = 0; i < shares.size(); ++i) {
            shares[i].samples = other.shares[i].samples;
            shares[i].wrong = other.shares[i].wrong;
        }
    }
    /// Makes it a batch of this rank's samples, once they are dealt.
    void keep_share(int rank) {
        if (!shares.empty()) batch.narrow_to(at(shares, rank).batch);
    }
    /// Makes it a batch of no samples, with results of no rows: as that a wrong batch goes on until all ranks know.
    void clear_batch() {
        batch.clear();
        for (MatrixView<float>& out : output)
            out = {out.data(), 0, out.columns(), out.stride()};
    }
};

}  // namespace shardwise::inline SHARDWISE_ABI::steps
