// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <string>

#include "failure/failing.hpp"
#include "shardwise/comm/mpi.hpp"

int main(int argc, char** argv) {
    const std::string scenario = argc > 1 ? argv[1] : "";
    shardwise::MpiOptions options{.hosts = scenario == "hosts_that_do_not_divide" ? 3 : 2,
                                  .deadline = failing::deadline(scenario)};
    return shardwise::run_mpi(options, [&](shardwise::MpiCommunicator& comm) {
        if (scenario == "options_differ") {
            const shardwise::MpiCommunicator other{{.chunk_bytes = comm.rank() == 1 ? 100 : 200}};
        } else if (scenario == "unfinished" && comm.rank() == 2) {
            static_cast<void>(comm.post({.step = "forgotten"}, {}, {}));
        } else {
            failing::act(comm, scenario);
        }
    });
}
