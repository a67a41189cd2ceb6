// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/comm/mpi_communicator.hpp"
#include "shardwise/comm/mpi_environment.hpp"
#include "shardwise/comm/mpi_run.hpp"

/// \file
/// All that is needed to run on MPI: MpiCommunicator, MpiEnvironment, MpiOptions and run_mpi.
