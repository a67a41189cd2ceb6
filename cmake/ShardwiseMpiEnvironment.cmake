# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# SHARDWISE_MPI_ENVIRONMENT, for tests that start mpirun.

# Open MPI with more ranks than cores, in one process tree, possibly as root in a container without a network.
set(SHARDWISE_MPI_ENVIRONMENT
    "OMPI_ALLOW_RUN_AS_ROOT=1"
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
    "OMPI_MCA_rmaps_base_oversubscribe=1"
    "OMPI_MCA_hwloc_base_binding_policy=none"
    "OMPI_MCA_mpi_yield_when_idle=1"
    "OMPI_MCA_plm=isolated"
    "OMPI_MCA_pml=ob1"
    "OMPI_MCA_btl=self,vader"
    "OMPI_MCA_btl_vader_single_copy_mechanism=none"
    "OMPI_MCA_osc=^ucx")
