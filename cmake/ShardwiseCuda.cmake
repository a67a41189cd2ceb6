# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# The CUDA language, for the architecture of the H100 and the H200. Compiling needs no GPU.
include_guard(GLOBAL)

set(CMAKE_CUDA_ARCHITECTURES 90 CACHE STRING "GPU architectures to compile for")
if(NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
endif()
enable_language(CUDA)
foreach(config RELEASE RELWITHDEBINFO)
    set(CMAKE_CUDA_FLAGS_${config} ${CMAKE_CXX_FLAGS_${config}})
endforeach()
