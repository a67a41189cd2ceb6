// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

// The C++ bindings that older versions of MPI bring along are not used.
#if !defined(OMPI_SKIP_MPICXX)
#define OMPI_SKIP_MPICXX 1
#endif
#if !defined(MPICH_SKIP_MPICXX)
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"

/// \file
/// Starting and ending MPI, and what its error codes become.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// Turns an MPI error code into an Error that names the call.
inline void mpi_check(int code, const char* call) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    throw Error{std::string{call} + ": " + text, 3};
}

/// Says why on standard error, gives the other ranks a second to say theirs, and ends the job.
[[noreturn]] inline void mpi_die(MPI_Comm comm, int rank, const std::string& reason, int exit_status = 3) {
    const std::string line = "rank " + std::to_string(rank) + ": " + reason + "\n";
    std::fflush(stdout);
    std::fputs(line.c_str(), stderr);
    std::fflush(stderr);
    std::this_thread::sleep_for(std::chrono::seconds{1});
    MPI_Abort(comm, exit_status);
    std::_Exit(exit_status);
}

/// A duplicate of an MPI communicator, on which errors come back as codes. Both making and freeing it are collective.
class MpiHandle {
  public:
    explicit MpiHandle(MPI_Comm comm) {
        mpi_check(MPI_Comm_dup(comm, &comm_), "MPI_Comm_dup");
        MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    }
    MpiHandle(const MpiHandle&) = delete;
    MpiHandle& operator=(const MpiHandle&) = delete;
    ~MpiHandle() {
        if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
    }
    [[nodiscard]] MPI_Comm get() const noexcept { return comm_; }
    [[nodiscard]] int rank() const {
        int rank = 0;
        mpi_check(MPI_Comm_rank(comm_, &rank), "MPI_Comm_rank");
        return rank;
    }
    /// Never frees it.
    void release() noexcept { comm_ = MPI_COMM_NULL; }

  private:
    MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace detail

/// Initializes MPI (MPI_THREAD_SERIALIZED) unless that was done already; whoever initialized finalizes.
///
/// Both are collective. When an exception takes the environment away, finalizing would wait for ranks that never come:
/// the job is aborted with exit status 3 instead.
class MpiEnvironment {
  public:
    MpiEnvironment() : exceptions_{std::uncaught_exceptions()} {
        int initialized = 0;
        MPI_Initialized(&initialized);
        if (initialized != 0) return;
        int provided = 0;  // where several threads are to call MPI, whoever starts them looks at what there is
        detail::mpi_check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
        owner_ = true;
    }
    MpiEnvironment(const MpiEnvironment&) = delete;
    MpiEnvironment& operator=(const MpiEnvironment&) = delete;
    ~MpiEnvironment() {
        if (!owner_) return;
        if (std::uncaught_exceptions() > exceptions_) {
            int rank = 0;
            MPI_Comm_rank(MPI_COMM_WORLD, &rank);
            detail::mpi_die(MPI_COMM_WORLD, rank, "an exception ends the program while other ranks still run");
        }
        MPI_Finalize();
    }

  private:
    int exceptions_;
    bool owner_ = false;
};

/// This thread's turn to call MPI, for as long as it lives, where several threads of a process do so: those of the
/// library take turns, and a program that calls MPI itself meanwhile takes its own. Costs nothing but a load while
/// there is one thread.
class [[nodiscard]] MpiTurn {
  public:
    MpiTurn() {
        if (several().load(std::memory_order_acquire)) lock_ = std::unique_lock{mutex()};
    }
    /// Whether MPI lets threads take turns: it was initialized with MPI_THREAD_SERIALIZED or more.
    [[nodiscard]] static bool possible() {
        int provided = MPI_THREAD_SINGLE;
        detail::mpi_check(MPI_Query_thread(&provided), "MPI_Query_thread");
        return provided >= MPI_THREAD_SERIALIZED;
    }
    /// From here on threads take turns.
    static void begin() { several() = true; }

  private:
    static std::atomic<bool>& several() {
        static std::atomic<bool> value{false};
        return value;
    }
    static std::recursive_mutex& mutex() {
        static std::recursive_mutex one;
        return one;
    }
    std::unique_lock<std::recursive_mutex> lock_;
};

/// What a MpiCommunicator and run_mpi are made with; the same on all ranks.
struct MpiOptions {
    MPI_Comm comm = MPI_COMM_WORLD;                    ///< duplicated, so that the caller's own traffic stays apart
    int hosts = 0;                                     ///< 0: the real ones; otherwise pretend so many, equally large
    std::chrono::milliseconds deadline{300'000};       ///< the longest that one wait may last
    std::int64_t chunk_bytes = std::int64_t{1} << 30;  ///< a message of at least this many bytes travels in chunks
    std::chrono::milliseconds grace{
        2'000};  ///< run_mpi: how long a rank with bad input waits for the others' agreement
};

}  // namespace shardwise::inline SHARDWISE_ABI
