// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Random rounds; prints what was counted, for mpi_meter.py to compare with what Open MPI meters.

#include <cstdint>
#include <cstdio>
#include <string>

#include "conformance/checks.hpp"
#include "shardwise/comm/counting.hpp"
#include "shardwise/comm/mpi.hpp"

int main() {
    using namespace shardwise;
    return run_mpi({.hosts = 1}, [](MpiCommunicator& below) {
        CountingCommunicator<MpiCommunicator> comm{below};
        conformance::RandomRounds::run(comm);
        conformance::ThreeFlights::run(comm);
        std::string bytes;
        std::string messages;
        for (int to = 0; to < comm.size(); ++to) {
            const TierTraffic& sent = comm.sent().at(comm.rank(), to);
            bytes += (to == 0 ? "" : ", ") + std::to_string(sent.payload + sent.control);
            messages += (to == 0 ? "" : ", ") + std::to_string(sent.messages);
        }
        std::printf("{\"rank\": %d, \"sent_bytes\": [%s], \"sent_messages\": [%s]}\n", comm.rank(), bytes.c_str(),
                    messages.c_str());
    });
}
