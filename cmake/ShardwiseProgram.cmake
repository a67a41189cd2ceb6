# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# shardwise_example(NAME <name> SOURCES <file>... [LIBRARIES <target>...])
# shardwise_benchmark(NAME <name> SOURCES <file>... [LIBRARIES <target>...])
#
# A program in build/<preset>/examples/ or build/<preset>/benchmarks/. It links every tier that is present, the compiled form and CLI11,
# fmt and nlohmann_json; a benchmark links Google Benchmark too. SHARDWISE_WITH_MPI is 1 where the mpi tier is there
# and 0 where it is not.
#
# shardwise_programs(example|benchmark) builds what lies in the current folder: each *.cpp is a program of its own, and
# each subfolder with a CMakeLists.txt is added.
include_guard(GLOBAL)

find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(benchmark REQUIRED)

add_custom_target(examples)
add_custom_target(benchmarks)

set(SHARDWISE_HOST_TIERS ${SHARDWISE_TIERS_PRESENT})
list(REMOVE_ITEM SHARDWISE_HOST_TIERS cuda)
list(TRANSFORM SHARDWISE_HOST_TIERS PREPEND shardwise::)
# Bodies of the core tier once for all programs, where that is built.
set(SHARDWISE_PROGRAM_LIBRARIES ${SHARDWISE_HOST_TIERS})
if(TARGET shardwise::compiled)
    list(APPEND SHARDWISE_PROGRAM_LIBRARIES shardwise::compiled)
endif()

function(shardwise_program FOLDER)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME" "SOURCES;LIBRARIES")
    add_executable(${arg_NAME} ${arg_SOURCES})
    add_dependencies(${FOLDER} ${arg_NAME})
    target_link_libraries(${arg_NAME} PRIVATE
        shardwise_build_flags ${SHARDWISE_PROGRAM_LIBRARIES} CLI11::CLI11 fmt::fmt nlohmann_json::nlohmann_json ${arg_LIBRARIES})
    target_compile_definitions(${arg_NAME} PRIVATE SHARDWISE_WITH_MPI=$<TARGET_EXISTS:shardwise::mpi>)
    # One unit a program: what its files include, CLI11 and JSON above all, takes longer than what they say.
    set_target_properties(${arg_NAME} PROPERTIES
        UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6 RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${FOLDER})
endfunction()

function(shardwise_example)
    shardwise_program(examples ${ARGV})
endfunction()

function(shardwise_benchmark)
    shardwise_program(benchmarks ${ARGV} LIBRARIES benchmark::benchmark)
endfunction()

macro(shardwise_programs KIND)
    file(GLOB sources CONFIGURE_DEPENDS *.cpp)
    foreach(source IN LISTS sources)
        cmake_path(GET source STEM name)
        cmake_language(CALL shardwise_${KIND} NAME ${name} SOURCES ${source})
    endforeach()
    shardwise_add_subfolders(.dir)
endmacro()
