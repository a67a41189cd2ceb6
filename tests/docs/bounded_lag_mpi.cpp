// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// The program of docs/bounded_lag.md, run under mpirun.

#include <cstdio>

#include "shardwise/comm/mpi.hpp"
#include "shardwise/comm/mpi_slots.hpp"
#include "shardwise/shardwise.hpp"

namespace sw = shardwise;

int main() {
    return sw::run_mpi({.hosts = 1}, [](sw::MpiCommunicator& comm) {
        using Layer = sw::EmbeddingLayer<sw::Optimizer<sw::Frozen>, sw::Collective<sw::BoundedLag<1>>>;
        sw::MpiSlots slots{{.hosts = 1}};  // as the communicator's options
        Layer layer{comm, {{.name = "item", .rows = 100, .dim = 4}}, {.bound = {.samples = 2}, .slots = slots}};
        const sw::JaggedBatch<int> batch{.samples = 2, .features = 1, .values = {3, 4}};
        auto first = layer.start(batch.view());
        auto second = layer.start(batch.view());
        if (comm.rank() == 0) std::printf("%lld samples\n", static_cast<long long>(layer.forward(first).rows()));
        layer.drain();
    });
}
