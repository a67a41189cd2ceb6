// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "../train_dlrm/options.hpp"
#include "delays.hpp"
#include "model_shape.hpp"
#include "shardwise/embedding/make_layer.hpp"

/// \file
/// What infer_dlrm is asked for.

namespace infer_dlrm {

namespace sw = shardwise;

enum class Transport {
    slots,     ///< one-sided: a store into the peer's memory, or a put of MPI
    messages,  ///< slots over messages of a communicator
    rounds     ///< Collective<Flat>: ranks in step, the yardstick
};
[[nodiscard]] std::string name_of(Transport transport);

struct Options {
    // where
    int ranks = 4;
    int hosts = 1;
    double deadline_seconds = 300;
    bool mpi = false;
    // how far apart
    int bound = 0;
    std::string ids = "sample";
    std::string serve = "together";
    std::string progress = "calls";
    Transport transport = Transport::slots;
    Delay delay;
    std::string delay_text = "none";
    // how much
    std::int64_t batch = 256;  ///< samples a rank
    std::int64_t batches = 0;  ///< of each rank, in a run; 0: all of the data
    std::int64_t warmup = 5;   ///< batches before each run
    int runs = 3;
    std::uint64_t seed = 1;
    // data, as the trainers read it; its batches are those of all ranks
    train_dlrm::Options data;
    std::int64_t skew = 1;  ///< ids of a bag at most, drawn for each table, rank and batch
    // model
    std::string load;
    ModelShape shape;
    std::string sharding = "table";
    std::string pooling = "sum";
    std::string wire = "fp32";
    // what to show and keep
    bool explain = false;
    std::string out;
    std::string trace;
    std::string json;
};

/// Of the layer.
[[nodiscard]] sw::LayerNames names_of(const Options& options);

/// \returns nothing when it asked for help; `text` is the help then \throws BadInput with one sentence
[[nodiscard]] std::optional<Options> parse_options(int argc, const char* const* argv, std::string& text);

}  // namespace infer_dlrm
