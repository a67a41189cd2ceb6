// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "program.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "options.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/comm/under_mpirun.hpp"
#include "shardwise/core/error.hpp"
#include "stop_signal.hpp"
#include "trainer.hpp"
#if SHARDWISE_WITH_MPI
#include "shardwise/comm/mpi.hpp"
#endif

/// \file
/// The same source runs on threads and under mpirun.

namespace {

using namespace train_dlrm;

/// As a shell has it.
int status_of(int signal) {
    return signal == 0 ? 0 : 128 + signal;
}

int run_threads(const Options& o) {
    sw::ThreadWorld world{sw::ThreadWorldOptions{
        .topology = sw::Topology::of(o.ranks, o.hosts),
        .deadline = std::chrono::milliseconds{static_cast<std::int64_t>(1e3 * o.deadline_seconds)}}};
    int signal = 0;
    world.run([&](sw::ThreadCommunicator& comm) {
        const int ended_by = run(o, comm);
        if (comm.rank() == 0) signal = ended_by;
    });
    return status_of(signal);
}

#if SHARDWISE_WITH_MPI
int run_processes(const std::optional<Options>& o, const std::string& wrong) {
    sw::MpiOptions options;
    if (o) {
        options.hosts = o->hosts;
        options.deadline = std::chrono::milliseconds{static_cast<std::int64_t>(1e3 * o->deadline_seconds)};
    }
    int signal = 0;
    const int status = sw::run_mpi(options, [&](sw::MpiCommunicator& comm) {
        if (!o) throw sw::BadInput{wrong};  // once, for all ranks
        signal = run(*o, comm);
    });
    return status != 0 ? status : status_of(signal);
}
#else
int run_processes(const std::optional<Options>&, const std::string&) {
    throw sw::BadInput{
        "this program was built without MPI: run it without mpirun, or install Open MPI and build again"};
}
#endif

int parse_and_run(const char* program, int argc, char** argv) {
    std::string text;
    std::optional<Options> options;
    try {
        options = parse_options(program, argc, argv, text);
    } catch (const sw::BadInput& error) {
        if (!sw::under_mpirun()) throw;
        return run_processes(std::nullopt, error.what());
    }
    if (!options) {
        const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
        if (rank == nullptr || std::string{rank} == "0") fmt::print("{}", text);
        return 0;
    }
    catch_stop_signals();
    return options->mpi ? run_processes(options, "") : run_threads(*options);
}

}  // namespace

namespace train_dlrm {

int run_program(const char* name, int argc, char** argv) {
    try {
        return parse_and_run(name, argc, argv);
    } catch (const sw::Error& error) {
        std::fprintf(stderr, "%s: %s\n", name, error.what());
        return error.exit_status();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", name, error.what());
        return 3;
    }
}

}  // namespace train_dlrm
