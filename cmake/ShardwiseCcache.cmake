# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Compilers of this project run under ccache, where it is installed. Before any target, which take the launcher as it is.
include_guard(GLOBAL)

find_program(SHARDWISE_CCACHE ccache)
mark_as_advanced(SHARDWISE_CCACHE)
if(SHARDWISE_CCACHE)
    # What a unit includes is known from its compiler, without a preprocessor of its own (depend). Of precompiled headers,
    # macros and times are taken for granted.
    set(CMAKE_CXX_COMPILER_LAUNCHER
        ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${SHARDWISE_CCACHE} CACHE STRING "")
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${SHARDWISE_CCACHE} CACHE STRING "")
endif()
