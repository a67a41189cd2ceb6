// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "options.hpp"
#include "output_files.hpp"
#include "pipeline.hpp"
#include "report.hpp"
#include "samples.hpp"
#include "shardwise/comm/message_slots.hpp"
#include "shardwise/comm/thread_slots.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/comm/under_mpirun.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/plan/chrome_trace.hpp"
#if SHARDWISE_WITH_MPI
#include "shardwise/comm/mpi.hpp"
#include "shardwise/comm/mpi_slots.hpp"
#endif

/// \file
/// A frozen DLRM whose ranks may be k batches apart. (Bounded lag, section IV)

namespace {

using namespace infer_dlrm;

/// A rank. Collective.
void run(const Options& given, sw::CommunicatorRef comm, std::optional<sw::OneSidedRef> slots, const Samples& samples) {
    Options o = given;
    o.batches = std::ssize(samples);
    Pipeline pipeline{o, comm, slots, samples};
    if (o.explain) {
        if (comm.rank() == 0) explain(o, pipeline, samples);
        return;
    }
    std::vector<Run> runs;
    for (int number = 1; number <= o.runs; ++number) {
        static_cast<void>(pipeline.run(0, std::min(o.warmup, o.batches), 0));
        pipeline.tracer().record(!o.trace.empty() && number == o.runs);
        runs.push_back(pipeline.run(0, o.batches, number));
        pipeline.tracer().record(false);
    }
    if (!o.trace.empty()) sw::write_chrome_trace(comm, o.trace, pipeline.tracer());
    if (!o.out.empty()) write_predictions(o, comm, pipeline, samples);
    const nlohmann::json report = make_report(o, comm, pipeline, runs);
    if (comm.rank() != 0) return;
    print(report);
    if (!o.json.empty()) output_files::write_text(o.json, report.dump(1) + "\n");
}

std::chrono::milliseconds deadline_of(const Options& o) {
    return std::chrono::milliseconds{static_cast<std::int64_t>(1e3 * o.deadline_seconds)};
}

int run_threads(const Options& o) {
    const std::shared_ptr<const Samples> samples = read_samples(o, true);
    sw::ThreadWorld world{
        sw::ThreadWorldOptions{.topology = sw::Topology::of(o.ranks, o.hosts), .deadline = deadline_of(o)}};
    world.run([&](sw::ThreadCommunicator& comm) {
        if (o.transport == Transport::rounds) return run(o, comm, std::nullopt, *samples);
        if (o.transport == Transport::slots) {
            sw::ThreadSlots slots{comm};
            return run(o, comm, sw::OneSidedRef{slots}, *samples);
        }
        sw::ThreadCommunicator own = comm.duplicate();
        sw::MessageSlots slots{own, deadline_of(o)};
        run(o, comm, sw::OneSidedRef{slots}, *samples);
    });
    return 0;
}

#if SHARDWISE_WITH_MPI
int run_processes(const std::optional<Options>& o, const std::string& wrong) {
    sw::MpiOptions options;
    if (o) {
        options.hosts = o->hosts;
        options.deadline = deadline_of(*o);
    }
    return sw::run_mpi(options, [&](sw::MpiCommunicator& comm) {
        if (!o) throw sw::BadInput{wrong};  // once, for all ranks
        const std::shared_ptr<const Samples> samples = read_samples(*o, comm.rank() == 0);
        if (o->transport == Transport::rounds) return run(*o, comm, std::nullopt, *samples);
        if (o->transport == Transport::slots) {
            sw::MpiSlots slots{options};
            return run(*o, comm, sw::OneSidedRef{slots}, *samples);
        }
        sw::MpiCommunicator own{options};
        sw::MessageSlots slots{own, deadline_of(*o)};
        run(*o, comm, sw::OneSidedRef{slots}, *samples);
    });
}
#else
int run_processes(const std::optional<Options>&, const std::string&) {
    throw sw::BadInput{
        "this program was built without MPI: run it without mpirun, or install Open MPI and build again"};
}
#endif

int parse_and_run(int argc, char** argv) {
    std::string text;
    std::optional<Options> options;
    try {
        options = parse_options(argc, argv, text);
    } catch (const sw::BadInput& error) {
        if (!sw::under_mpirun()) throw;
        return run_processes(std::nullopt, error.what());
    }
    if (!options) {
        const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
        if (rank == nullptr || std::string{rank} == "0") fmt::print("{}", text);
        return 0;
    }
    return options->mpi ? run_processes(options, "") : run_threads(*options);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return parse_and_run(argc, argv);
    } catch (const shardwise::Error& error) {
        std::fprintf(stderr, "infer_dlrm: %s\n", error.what());
        return error.exit_status();
    } catch (const std::bad_alloc&) {
        std::fprintf(
            stderr,
            "infer_dlrm: there is not so much memory: give smaller tables, or fewer or smaller batches, of which "
            "all samples are kept\n");
        return 2;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "infer_dlrm: %s\n", error.what());
        return 3;
    }
}
