// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "shardwise/comm/collectives.hpp"
#include "shardwise/core/error.hpp"
#include "step.hpp"

namespace plain_mpi_dlrm_step {

std::vector<std::int64_t> ids_of(const Problem& problem, int step, int rank) {
    std::vector<std::int64_t> ids;
    for (std::size_t f = 0; f < problem.rows.size(); ++f) {
        for (std::int64_t sample = 0; sample < problem.batch; ++sample) {
            const std::int64_t number = (step * std::int64_t{1000} + rank) * problem.batch + sample;
            std::uint64_t x = problem.seed + static_cast<std::uint64_t>(number) * 0x9e3779b97f4a7c15ULL + f;
            x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
            x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
            ids.push_back(static_cast<std::int64_t>((x >> 33U) % static_cast<std::uint64_t>(problem.rows[f])));
        }
    }
    return ids;
}

}  // namespace plain_mpi_dlrm_step

namespace {

namespace sw = shardwise;
using namespace plain_mpi_dlrm_step;

/// \throws Error unless both versions gave the same bits on every rank
void compare(const Problem& problem, sw::MpiCommunicator& comm) {
    const std::vector<float> plain = train_plain(problem, MPI_COMM_WORLD);
    const std::vector<float> ours = train_shardwise(problem, comm);
    std::int64_t differ = 0;
    for (std::size_t i = 0; i < plain.size(); ++i)
        differ += std::memcmp(&plain[i], &ours[i], sizeof(float)) != 0 ? 1 : 0;
    std::int64_t sum = 0;
    for (const auto& theirs : sw::all_gather_v<std::int64_t>(comm, std::span{&differ, 1}))
        sum += theirs.at(0);
    if (sum != 0) throw sw::Error{fmt::format("{} of the last vectors' elements differ", sum), 3};
    if (comm.rank() == 0)
        fmt::print(
            "{} steps of {} samples on {} ranks: plain MPI and shardwise gave the same bits, the first of them "
            "{:.9g}\n",
            problem.steps, problem.batch * comm.size(), comm.size(), plain.at(0));
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    Problem problem;
    problem.rows = {1000, 37, 5000, 3};
    int ranks = 0;
    int hosts = 0;
    CLI::App app{
        "Trains embeddings by hand in plain MPI (plain_step.cpp) and with shardwise (shardwise_step.cpp), and "
        "compares the bits. Run it under mpirun.",
        "plain_mpi_dlrm_step"};
    app.option_defaults()->always_capture_default();
    app.add_option("--ranks", ranks, "Number of processes that mpirun has started; checked when given")
        ->default_str("");
    app.add_option("--hosts", hosts, "Number of hosts to pretend; unless given the real ones")->default_str("");
    app.add_option("--steps", problem.steps, "Training steps")->check(CLI::PositiveNumber);
    app.add_option("--batch", problem.batch, "Samples a rank and step")->check(CLI::PositiveNumber);
    app.add_option("--seed", problem.seed, "Of weights and ids");
    std::string wrong;
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        fmt::print("{}", app.help());
        return 0;
    } catch (const CLI::ParseError& error) {
        wrong = error.what();
    }
    return sw::run_mpi({.hosts = wrong.empty() ? hosts : 0}, [&](sw::MpiCommunicator& comm) {
        if (!wrong.empty()) throw sw::BadInput{wrong};
        if (app.get_option("--ranks")->count() != 0 && ranks != comm.size())
            throw sw::BadInput{fmt::format("--ranks {} in a job of {} processes", ranks, comm.size())};
        if (app.get_option("--hosts")->count() != 0) static_cast<void>(sw::Topology::of(comm.size(), hosts));
        compare(problem, comm);
    });
}
