# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# shardwise_build_flags: how this project compiles its own tests, examples and benchmarks. Users never see it.
include_guard(GLOBAL)

set(SHARDWISE_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror)

add_library(shardwise_build_flags INTERFACE)
set(cxx_flags ${SHARDWISE_WARNINGS} -fno-math-errno)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    list(APPEND cxx_flags -Wno-restrict)  # false alarms for "text" + std::to_string(n) at -O3 (GCC bug 105329)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # Units of templates outgrow 128 MB, where GCC begins to collect garbage: a tenth of their time. In kB.
    list(APPEND cxx_flags --param=ggc-min-heapsize=1000000)
endif()
if(SHARDWISE_NATIVE)
    list(APPEND cxx_flags -march=native)
endif()
target_compile_options(shardwise_build_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${cxx_flags}>")
# CMake 3.25 knows no CUDA_STANDARD 20 for nvcc 13. Diagnostic 554 says that a conversion operator to its own class is
# never used, and overlooks the constraint that excludes just that.
set(cuda_flags -std=c++20 --expt-relaxed-constexpr --Werror=all-warnings --diag-suppress=554)
target_compile_options(shardwise_build_flags INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:${cuda_flags}>")

if(SHARDWISE_ASSERTIONS)
    target_compile_definitions(shardwise_build_flags INTERFACE SHARDWISE_ASSERTIONS)
endif()

if(SHARDWISE_SANITIZER)
    set(asan address,undefined)
    set(tsan thread)
    set(fuzz fuzzer-no-link,address,undefined)
    set(sanitize -fsanitize=${${SHARDWISE_SANITIZER}})
    target_compile_options(shardwise_build_flags INTERFACE
        ${sanitize} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
    target_link_options(shardwise_build_flags INTERFACE ${sanitize})
    # Of instrumented code GCC 12 finds members that "may be used uninitialized" where an exception leaves a constructor.
    target_compile_options(shardwise_build_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()
