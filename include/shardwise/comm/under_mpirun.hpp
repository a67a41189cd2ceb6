// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdlib>
#include <initializer_list>

#include "shardwise/core/config.hpp"

/// \file
/// Finding out whether a program is one process of a job, before anything of MPI is called.

namespace shardwise::inline SHARDWISE_ABI {

/// Whether this process was started as a part of an MPI job: by the environment that Open MPI's and MPICH's launchers
/// set, and PMIx. Needs no MPI, so that a program which was built without can say so. Not collective.
[[nodiscard]] inline bool under_mpirun() {
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
        if (std::getenv(name) != nullptr) return true;
    return false;
}

}  // namespace shardwise::inline SHARDWISE_ABI
