// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/comm/mpi.hpp"

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "laws/bounded.hpp"
#include "laws/laws.hpp"
#include "shardwise/comm/message_slots.hpp"
#include "shardwise/comm/mpi_slots.hpp"

/// \file
/// The laws under mpirun, in every topology of the ranks there are. With `--meter` each rank prints what it counted,
/// for a comparison with what Open MPI meters.

int main(int argc, char** argv) {
    namespace sw = shardwise;
    const bool meter = argc > 1 && std::string{argv[1]} == "--meter";
    return sw::run_mpi({.hosts = 1}, [&](sw::MpiCommunicator& world) {
        const int count = std::getenv("SHARDWISE_FULL") != nullptr ? 24 : 4;
        const std::vector<laws::Composition> compositions = laws::all_compositions();
        sw::TrafficMatrix sent{world.topology()};
        int checked = 0;
        for (int hosts = 1; hosts <= world.size(); ++hosts) {
            if (world.size() % hosts != 0) continue;
            sw::MpiCommunicator comm{{.hosts = hosts, .chunk_bytes = 512}};
            sw::CountingCommunicator<sw::MpiCommunicator> counted{comm};
            for (std::size_t i = 0; i < compositions.size(); ++i) {
                for (const laws::Case& c : laws::cases_for(i, {comm.topology()}, meter ? 1 : count, compositions[i])) {
                    laws::check_laws(counted, compositions[i], c,
                                     laws::make_expected(compositions[i], c, {comm.rank()}));
                    ++checked;
                }
                const std::optional<laws::Composition> bounded = laws::bounded(compositions[i]);
                if (meter || !bounded || (bounded->rule.learns && i % 16 != 0)) continue;
                for (const laws::Case& c :
                     laws::bounded_cases_for(i, {comm.topology()}, bounded->rule.learns ? 1 : count / 2, *bounded)) {
                    const auto check = [&](sw::OneSidedRef slots) {
                        laws::check_bounded_or_learning(counted, slots, *bounded, c, laws::lag_for(i + c.seed, c),
                                                        laws::make_expected(*bounded, c, {comm.rank()}));
                    };
                    if (c.seed % 24 != 0 || bounded->rule.learns) {  // windows take MPI long to make
                        sw::MpiCommunicator own{{.hosts = 1}};
                        sw::MessageSlots slots{own};
                        check(slots);
                    } else {
                        sw::MpiSlots slots{{.hosts = hosts}};
                        check(slots);
                    }
                    ++checked;
                }
            }
            for (int to = 0; to < world.size(); ++to)
                sent.at(world.rank(), to) += counted.sent().at(world.rank(), to);
        }
        if (!meter) {
            if (world.rank() == 0) std::printf("the laws held %d times on %d ranks\n", checked, world.size());
            return;
        }
        std::string bytes;
        std::string messages;
        for (int to = 0; to < world.size(); ++to) {
            const sw::TierTraffic& cell = sent.at(world.rank(), to);
            bytes += (to == 0 ? "" : ", ") + std::to_string(cell.payload + cell.control);
            messages += (to == 0 ? "" : ", ") + std::to_string(cell.messages);
        }
        std::printf("{\"rank\": %d, \"sent_bytes\": [%s], \"sent_messages\": [%s]}\n", world.rank(), bytes.c_str(),
                    messages.c_str());
    });
}
