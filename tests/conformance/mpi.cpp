// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/comm/mpi.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

#include "conformance/checks.hpp"

namespace {

using namespace shardwise;

/// One check on a communicator of its own.
void run_check(const conformance::Check<MpiCommunicator>& check, const MpiOptions& options) {
    MpiCommunicator comm{options};
    const std::string where = check.name + " on " + std::to_string(comm.topology().hosts) + " hosts with chunks of " +
                              std::to_string(options.chunk_bytes) + " bytes";
    try {
        check.run(comm);
    } catch (const Mismatch& error) {
        if (!check.mismatch) throw std::runtime_error{where + ": " + error.what()};
        return;
    } catch (const std::exception& error) {
        throw std::runtime_error{where + ": " + error.what()};
    }
    if (check.mismatch) throw std::runtime_error{where + ": no Mismatch"};
}

/// When all ranks let go of a flush at the same time it completes, and the communicator lives on.
void abandon_together(MpiCommunicator& comm) {
    const conformance::Pattern pattern{.seed = 9, .ranks = comm.size(), .density = 8};
    {
        const conformance::PatternFlush<MpiCommunicator> flush{comm, pattern, 0};
        comm.abandon(flush.ticket());
    }
    conformance::require(comm.outstanding() == 0, "an abandoned flush is outstanding");
    conformance::RandomFlushes::run_pattern(comm, pattern, 3);
}

/// Which ranks share a host, as a function of the lowest rank on each rank's host.
void check_hosts() {
    using conformance::require;
    require(detail::topology_of_first_ranks({0, 0, 0, 0}) == Topology{.hosts = 1, .ranks_per_host = 4}, "one host");
    require(detail::topology_of_first_ranks({0, 0, 2, 2}) == Topology{.hosts = 2, .ranks_per_host = 2}, "two hosts");
    require(detail::topology_of_first_ranks({0, 1, 2}) == Topology{.hosts = 3, .ranks_per_host = 1}, "three hosts");
    for (const std::vector<int>& wrong :
         {std::vector<int>{0, 1, 0, 1}, {0, 0, 2}, {0, 1, 1}, {0, 0, 2, 2, 2}, {0, 0, 0, 3}, {0, 1, 0}}) {
        try {
            detail::topology_of_first_ranks(wrong);
        } catch (const BadInput& error) {
            conformance::require_text(error.what(), {"--map-by ppr:", "shares its host with rank"});
            continue;
        }
        require(false, "uneven hosts went unnoticed");
    }
}

}  // namespace

int main() {
    return run_mpi({}, [](MpiCommunicator& world) {
        int count = 0;
        for (int hosts = 0; hosts <= world.size(); ++hosts) {
            if (hosts != 0 && world.size() % hosts != 0) continue;
            for (const std::int64_t chunk : {std::int64_t{1} << 30U, std::int64_t{1024}}) {
                if (hosts > 1 && chunk == 1024) continue;
                const MpiOptions options{.hosts = hosts, .deadline = std::chrono::seconds{60}, .chunk_bytes = chunk};
                for (const auto& check : conformance::checks<MpiCommunicator>(world.size())) {
                    run_check(check, options);
                    ++count;
                }
                run_check({"abandon_together", abandon_together}, options);
            }
        }
        check_hosts();
        if (world.rank() == 0) std::printf("%d checks passed on %d ranks\n", count, world.size());
    });
}
