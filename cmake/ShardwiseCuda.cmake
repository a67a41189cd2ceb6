# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# The CUDA language, where the toolkit has a compiler, for the architecture of the H100 and the H200. Compiling needs
# no GPU. CMAKE_CUDA_COMPILER is set afterwards if it can be used.
include_guard(GLOBAL)

find_package(CUDAToolkit REQUIRED)
if(NOT CMAKE_CUDA_COMPILER AND CUDAToolkit_NVCC_EXECUTABLE)
    set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
endif()
if(CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_ARCHITECTURES 90 CACHE STRING "GPU architectures to compile for")
    enable_language(CUDA)
    foreach(config RELEASE RELWITHDEBINFO)
        set(CMAKE_CUDA_FLAGS_${config} ${CMAKE_CXX_FLAGS_${config}})
    endforeach()
endif()
