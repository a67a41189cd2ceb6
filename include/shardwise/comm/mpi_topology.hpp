// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "shardwise/comm/mpi_environment.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// Which ranks of an MPI communicator share a host.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// The lowest rank on each rank's host. \throws BadInput unless hosts are equally large and numbered one after another
inline Topology topology_of_first_ranks(const std::vector<int>& first) {
    const auto ranks = static_cast<int>(first.size());
    int per_host = 0;
    while (per_host < ranks && first[static_cast<std::size_t>(per_host)] == 0)
        ++per_host;
    for (int rank = 0; rank < ranks; ++rank) {
        const int expected = rank / per_host * per_host;
        const int seen = first[static_cast<std::size_t>(rank)];
        if (seen != expected || ranks % per_host != 0)
            throw BadInput{
                concat({"the ranks are not numbered host by host with equally many on each: the first host has the ",
                        per_host, " ranks from 0 on, of ", ranks, ", and rank ", rank, " shares its host with rank ",
                        seen, ". Launch with as many ranks on each host, such as `mpirun --map-by ppr:", per_host,
                        ":node`, or give a number of hosts to pretend"})};
    }
    return {.hosts = ranks / per_host, .ranks_per_host = per_host};
}

/// Real or pretended hosts. Collective. \throws BadInput on all ranks alike
inline Topology mpi_topology(MPI_Comm comm, const MpiOptions& options) {
    int rank = 0;
    int ranks = 0;
    mpi_check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
    mpi_check(MPI_Comm_size(comm, &ranks), "MPI_Comm_size");

    // min and max at once: the minimum of x and of -x
    std::array<std::int64_t, 4> agreed{options.hosts, -std::int64_t{options.hosts}, options.chunk_bytes,
                                       -options.chunk_bytes};
    mpi_check(MPI_Allreduce(MPI_IN_PLACE, agreed.data(), 4, MPI_INT64_T, MPI_MIN, comm), "MPI_Allreduce");
    if (agreed[0] != -agreed[1] || agreed[2] != -agreed[3])
        throw BadInput{concat({"ranks disagree: from ", agreed[0], " to ", -agreed[1], " hosts, chunks from ",
                               agreed[2], " to ", -agreed[3], " bytes; give all ranks the same"})};
    if (options.chunk_bytes < 1 || options.chunk_bytes > std::numeric_limits<int>::max())
        throw BadInput{
            concat({"chunks of ", options.chunk_bytes, " bytes: give 1 to ", std::numeric_limits<int>::max()})};
    if (options.hosts != 0) return Topology::of(ranks, options.hosts);

    MPI_Comm host = MPI_COMM_NULL;
    mpi_check(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host), "MPI_Comm_split_type");
    int mine = rank;
    mpi_check(MPI_Bcast(&mine, 1, MPI_INT, 0, host), "MPI_Bcast");
    mpi_check(MPI_Comm_free(&host), "MPI_Comm_free");
    std::vector<int> first(static_cast<std::size_t>(ranks));
    mpi_check(MPI_Allgather(&mine, 1, MPI_INT, first.data(), 1, MPI_INT, comm), "MPI_Allgather");
    return topology_of_first_ranks(first);
}

}  // namespace detail

}  // namespace shardwise::inline SHARDWISE_ABI
