// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// The program of docs/communicators.md, run under mpirun.

#include "shardwise/comm/mpi.hpp"

#include <cstdio>

#include "shardwise/shardwise.hpp"

namespace sw = shardwise;

int main() {
    return sw::run_mpi({.hosts = 1}, [](sw::MpiCommunicator& comm) {
        sw::EmbeddingLayer<> layer{comm, {{.name = "item", .rows = 100, .dim = 4}}};
        const sw::JaggedBatch<int> batch{.samples = 2, .features = 1, .values = {3, 4}};
        const auto pooled = layer.forward(batch.view());
        if (comm.rank() == 0) std::printf("%lld samples\n", static_cast<long long>(pooled.rows()));
    });
}
