// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <vector>

#include "shardwise/comm/mpi.hpp"

/// \file
/// One training step of the embeddings of a DLRM, twice: by hand in MPI, and with shardwise.

namespace plain_mpi_dlrm_step {

/// What both versions are given.
struct Problem {
    std::vector<std::int64_t> rows;  ///< of each table; one feature looks up in each
    int dim = 8;
    std::int64_t batch = 64;  ///< samples a rank
    float learning_rate = 0.1F;
    std::uint64_t seed = 1;
    int steps = 10;
};

/// The ids of a step on a rank: one a feature and sample, feature-major.
[[nodiscard]] std::vector<std::int64_t> ids_of(const Problem& problem, int step, int rank);

/// What stands in for the dense part: the gradient with respect to every looked-up element, given its value.
[[nodiscard]] inline float gradient_of(float value, std::int64_t sample) {
    return 0.1F * value - 0.001F * static_cast<float>(sample % 7);
}

/// Trains with rows sharded over all ranks, and returns the last looked-up vectors of this rank, (batch, features *
/// dim).
[[nodiscard]] std::vector<float> train_plain(const Problem& problem, MPI_Comm comm);
[[nodiscard]] std::vector<float> train_shardwise(const Problem& problem, shardwise::MpiCommunicator& comm);

}  // namespace plain_mpi_dlrm_step
