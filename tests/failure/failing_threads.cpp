// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <cstdio>
#include <exception>
#include <string>

#include "failure/failing.hpp"
#include "shardwise/comm/thread_world.hpp"

int main(int argc, char** argv) {
    using namespace shardwise;
    const std::string scenario = argc > 1 ? argv[1] : "";
    try {
        ThreadWorld world{{.topology = Topology::of(4, 2),
                           .deadline = failing::deadline(scenario),
                           .grace = std::chrono::seconds{4}}};
        world.run([&](ThreadCommunicator& comm) { failing::act(comm, scenario); });
    } catch (const Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return error.exit_status();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 3;
    } catch (...) {
        std::fprintf(stderr, "an exception that is no std::exception\n");
        return 3;
    }
    return 0;
}
