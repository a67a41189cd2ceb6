// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/comm/mpi.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "conformance/checks.hpp"
#include "conformance/slot_checks.hpp"
#include "shardwise/comm/message_slots.hpp"
#include "shardwise/comm/mpi_slots.hpp"

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

/// When all ranks let go of a round at the same time it completes, and the communicator lives on.
void abandon_together(MpiCommunicator& comm) {
    const conformance::Pattern pattern{.seed = 9, .ranks = comm.size(), .density = 8};
    {
        const conformance::PatternRound<MpiCommunicator> round{comm, pattern, 0};
        comm.abandon(round.ticket());
    }
    conformance::require(comm.outstanding() == 0, "an abandoned round is outstanding");
    conformance::RandomRounds::run_pattern(comm, pattern, 3);
}

/// Once a message was wrong, what comes for the other rounds is not written into their memory, which may be gone.
void withdrawn(MpiCommunicator& comm) {
    if (comm.size() == 1) return;
    const std::vector<std::byte> content(64, std::byte{1});
    const auto send = [&](const char* step, std::size_t bytes) {
        const OutMessage out{.to = 0, .bytes = std::span{content}.first(bytes), .payload = 0};
        comm.wait(comm.post({.step = step}, {&out, 1}, {}));
    };
    if (comm.rank() == 1) send("first", 4);
    Buffer<std::byte> first;
    Buffer<std::byte> second;
    if (comm.rank() == 0) {
        const InMessage eight{.from = 1, .into = &first, .expected = 8};
        const InMessage all{.from = 1, .into = &second, .expected = 64};
        const Ticket of_first = comm.post({.step = "first"}, {}, {&eight, 1});
        const Ticket of_second = comm.post({.step = "second"}, {}, {&all, 1});
        bool found = false;
        try {
            comm.wait(of_first);
        } catch (const Mismatch&) {
            found = true;
        }
        conformance::require(found, "a wrong size went unnoticed");
        comm.abandon(of_first);
        comm.abandon(of_second);
        second.assign_zero(64);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (comm.rank() == 1) send("second", 64);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int poll = 0, any = 0; poll < 1000; ++poll)
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &any, MPI_STATUS_IGNORE);
    for (const std::byte byte : second.span())
        conformance::require(byte == std::byte{0}, "a message was written into memory that was let go");
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

/// Slots over messages, on a communicator of their own.
/// \throws std::runtime_error naming the check
template <class Slots>
void check_slots(Slots& slots, MpiCommunicator& world, const conformance::SlotCheck& check, const std::string& over) {
    try {
        check.run(slots, world);
    } catch (const std::exception& error) {
        throw std::runtime_error{check.name + " of slots over " + over + ": " + error.what()};
    }
}
/// Slots in the memory of one host, across hosts, and both.
int check_mpi_slots(MpiCommunicator& world) {
    int count = 0;
    for (int hosts = 1; hosts <= world.size() && world.size() > 1; ++hosts) {
        if (world.size() % hosts != 0) continue;
        for (const conformance::SlotCheck& check : conformance::slot_checks()) {
            MpiSlots slots{{.hosts = hosts, .deadline = std::chrono::seconds{60}}};
            conformance::require(slots.any_thread(), "threads of a rank have to take turns");
            check_slots(slots, world, check, std::to_string(hosts) + " hosts");
            ++count;
        }
    }
    return count;
}
int check_message_slots(MpiCommunicator& world) {
    if (world.size() == 1) return 0;
    for (const conformance::SlotCheck& check : conformance::slot_checks()) {
        MpiCommunicator own{{.hosts = 1, .deadline = std::chrono::seconds{60}}};
        MessageSlots slots{own, std::chrono::seconds{60}};
        check_slots(slots, world, check, "messages");
    }
    return static_cast<int>(conformance::slot_checks().size());
}

}  // namespace

int main() {
    return run_mpi({}, [](MpiCommunicator& world) {
        int count = check_message_slots(world) + check_mpi_slots(world);
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
                run_check({"withdrawn", withdrawn}, options);
            }
        }
        check_hosts();
        if (world.rank() == 0) std::printf("%d checks passed on %d ranks\n", count, world.size());
    });
}
