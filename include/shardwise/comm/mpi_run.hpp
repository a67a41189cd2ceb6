// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <cstdio>
#include <exception>
#include <limits>
#include <optional>
#include <string>
#include <thread>

#include "shardwise/comm/mpi_communicator.hpp"
#include "shardwise/comm/mpi_environment.hpp"
#include "shardwise/comm/mpi_pause.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"

/// \file
/// Running a body on every rank of an MPI job, so that the job always ends, and with the right exit status.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// The end of a rank's part: ranks tell each other whether their input was bad. By a non-blocking collective on a
/// communicator of its own, so that a rank which waits elsewhere is noticed instead of waited for.
class MpiEnd {
  public:
    explicit MpiEnd(const MpiOptions& options)
        : comm_{options.comm}, rank_{comm_.rank()}, deadline_{options.deadline}, grace_{options.grace} {}

    /// This rank is done. \returns the exit status: 2 when another rank's input was bad
    int done() {
        const std::optional<int> complaining = lowest_complaining(nobody, deadline_);
        if (!complaining) die("done, but not every other rank is by the deadline");
        return *complaining == nobody ? 0 : 2;
    }

    /// This rank's input was bad, and `unfinished` rounds may still move. \returns 2 when all ranks have come to their
    /// end, of which the lowest with bad input printed why; otherwise ends the job
    int bad_input(const std::string& what, bool unfinished) {
        if (unfinished) {  // the memory of those rounds is gone: MPI must not be called again
            std::this_thread::sleep_for(rank_ == 0 ? std::chrono::milliseconds{0} : grace_);
            mpi_die(comm_.get(), rank_, what, 2);
        }
        const std::optional<int> complaining = lowest_complaining(rank_, grace_);
        if (!complaining) mpi_die(comm_.get(), rank_, what, 2);
        if (*complaining == rank_) std::fprintf(stderr, "%s\n", what.c_str());
        return 2;
    }

    [[noreturn]] void die(const std::string& what) { mpi_die(comm_.get(), rank_, what); }
    /// Ranks disagree, as others say, too: rank 0 speaks for all, and ends the job. Where it does not, this rank does:
    /// late, as the job ends a second after rank 0 has spoken, or some seconds where the machine is busy.
    [[noreturn]] void disagree(const std::string& what) {
        if (rank_ != 0) std::this_thread::sleep_for(grace_ + std::chrono::seconds{4});
        die(what);
    }

  private:
    static constexpr int nobody = std::numeric_limits<int>::max();

    std::optional<int> lowest_complaining(int mine, std::chrono::milliseconds patience) {
        int lowest = nobody;
        MPI_Request request = MPI_REQUEST_NULL;
        mpi_check(MPI_Iallreduce(&mine, &lowest, 1, MPI_INT, MPI_MIN, comm_.get(), &request), "MPI_Iallreduce");
        const auto begin = std::chrono::steady_clock::now();
        MpiPause pause;
        for (int complete = 0;;) {
            mpi_check(MPI_Test(&request, &complete, MPI_STATUS_IGNORE), "MPI_Test");
            if (complete != 0) return lowest;
            if (std::chrono::steady_clock::now() - begin > patience) return std::nullopt;  // the caller ends the job
            pause([] { return true; });
        }
    }

    MpiHandle comm_;
    int rank_;
    std::chrono::milliseconds deadline_;
    std::chrono::milliseconds grace_;
};

}  // namespace detail

/// Runs `body(comm)` on every rank of an MPI job and ends it so that no rank hangs. Collective; to be called once, by
/// the thread that owns MPI, as `int main() { return shardwise::run_mpi({.hosts = 2}, body); }`.
///
/// - Every rank returns from `body`: 0.
/// - `body` throws BadInput: when within `options.grace` all ranks have come to their end, the lowest rank whose input
///   was bad prints it, and all ranks return 2. Otherwise some ranks wait for this one: it prints its error and aborts
///   the job with status 2.
/// - `body` throws Mismatch: as below, but while rank 0 does so, too, it alone prints.
/// - `body` throws anything else, or leaves a round unfinished: the rank prints "rank r: what", waits a second so that
///   others can print theirs, and aborts the job with status 3.
///
/// MPI is initialized and finalized, unless the caller had initialized it.
/// \param options  see MpiOptions
/// \param body     callable with a MpiCommunicator&
/// \returns the exit status for main
template <class Body>
[[nodiscard]] int run_mpi(const MpiOptions& options, Body&& body) {
    MpiEnvironment environment;
    detail::MpiEnd end{options};
    std::optional<MpiCommunicator> comm;
    try {
        comm.emplace(options);
        body(*comm);
        if (comm->outstanding() != 0)
            throw Error{"done, but " + std::to_string(comm->outstanding()) + " rounds were never waited for", 3};
        return end.done();
    } catch (const BadInput& error) {
        return end.bad_input(error.what(), comm && comm->outstanding() != 0);
    } catch (const Mismatch& error) {
        end.disagree(error.what());
    } catch (const std::exception& error) {
        end.die(error.what());
    } catch (...) {
        end.die("an exception that is no std::exception");
    }
}

}  // namespace shardwise::inline SHARDWISE_ABI
