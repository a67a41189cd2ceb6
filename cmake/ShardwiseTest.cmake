# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# shardwise_test(NAME <name> SOURCES <file>... [LIBRARIES <target>...] [RANKS <n>...] [MPI_RANKS <n>...] [OWN_MAIN]
#                [SANITIZERS asan tsan] [LABELS <label>...] [TIMEOUT <seconds>] [PARTS <n>])
#
# One GoogleTest executable, test_<name>, with RapidCheck at hand; usually all files of a folder. They are compiled
# together, up to sixteen in one translation unit, since what costs is GoogleTest, RapidCheck and templates that files
# share: so unnamed namespaces of a folder's files share their names, and a file with COMPILE_OPTIONS of its own stays
# apart. To run what one file holds: `test_<name> --gtest_filter='<its suite>.*'`. A program of its own is for what
# needs a process of its own (environment, threads of a BLAS, operator new), other libraries, other sanitizers, or an
# optimizer. It is one CTest test, `<name>`, or
#   - with PARTS, n of about as many cases each, `<name>.part<i>`: no run is long, and they may run side by side;
#   - with RANKS, one a count: `<name>.ranks<n>`, which finds n in the environment as SHARDWISE_TEST_RANKS;
#   - with MPI_RANKS, also one a count: `<name>.mpi<n>`, run by `mpirun -np n`. Such a test usually brings its OWN_MAIN.
# LIBRARIES is shardwise::core unless given; bodies are those of shardwise::compiled, where that is built. A test that
# asks for a tier which is not there, or for MPI where there is none, is left out with a line that says so. Under the
# asan and tsan presets only tests that list that sanitizer are built. SHARDWISE_FULL=1 in the environment asks a test
# for everything; its timeout is then ten times as long.
#
# shardwise_compile_fail(NAME <name> SOURCE <file> [LIBRARIES <target>...])
#
# A program that must not compile, and why: see compile_fail.cmake. Headers of a composed layer are compiled once before.
include_guard(GLOBAL)

find_package(GTest REQUIRED)
find_package(rapidcheck REQUIRED)

set(SHARDWISE_TEST_ENVIRONMENT
    "OPENBLAS_NUM_THREADS=1"
    "ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1")

include(ShardwiseMpiEnvironment)

function(shardwise_missing_tiers RESULT)
    set(missing "")
    foreach(library IN LISTS ARGN)
        if(library MATCHES "^shardwise::" AND NOT TARGET ${library})
            list(APPEND missing ${library})
        endif()
    endforeach()
    set(${RESULT} "${missing}" PARENT_SCOPE)
endfunction()

function(shardwise_test)
    cmake_parse_arguments(PARSE_ARGV 0 arg "OWN_MAIN" "NAME;TIMEOUT;PARTS"
        "SOURCES;LIBRARIES;RANKS;MPI_RANKS;SANITIZERS;LABELS")
    if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_SOURCES)
        message(FATAL_ERROR "shardwise_test: needs NAME and SOURCES, does not know '${arg_UNPARSED_ARGUMENTS}'")
    endif()
    if(SHARDWISE_SANITIZER AND NOT SHARDWISE_SANITIZER IN_LIST arg_SANITIZERS)
        return()
    endif()
    if(NOT arg_LIBRARIES)
        set(arg_LIBRARIES shardwise::core)
    endif()
    shardwise_missing_tiers(missing ${arg_LIBRARIES})
    if(missing)
        message(STATUS "shardwise: no test '${arg_NAME}', it needs ${missing}")
        return()
    endif()
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 300)
    endif()
    if(SHARDWISE_FULL)
        math(EXPR arg_TIMEOUT "10 * ${arg_TIMEOUT}")
    endif()

    set(target test_${arg_NAME})
    add_executable(${target} ${arg_SOURCES})
    list(LENGTH arg_SOURCES files)
    math(EXPR units "(${files} + 15) / 16")
    math(EXPR batch "(${files} + ${units} - 1) / ${units}")
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    if(TARGET shardwise::compiled)
        target_link_libraries(${target} PRIVATE shardwise::compiled)
        target_precompile_headers(${target} REUSE_FROM shardwise_test_headers)
    endif()
    target_link_libraries(${target} PRIVATE
        shardwise_build_flags ${arg_LIBRARIES} $<IF:$<BOOL:${arg_OWN_MAIN}>,GTest::gtest,GTest::gtest_main> rapidcheck)

    if(arg_PARTS)
        foreach(part RANGE 1 ${arg_PARTS})
            math(EXPR index "${part} - 1")
            set(test ${arg_NAME}.part${part})
            add_test(NAME ${test} COMMAND ${target})
            set_tests_properties(${test} PROPERTIES
                ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_PARTS};GTEST_SHARD_INDEX=${index}")
            list(APPEND tests ${test})
        endforeach()
    elseif(NOT arg_RANKS AND NOT arg_MPI_RANKS)
        add_test(NAME ${arg_NAME} COMMAND ${target})
        set(tests ${arg_NAME})
    endif()
    foreach(ranks IN LISTS arg_RANKS)
        set(test ${arg_NAME}.ranks${ranks})
        add_test(NAME ${test} COMMAND ${target})
        set_tests_properties(${test} PROPERTIES ENVIRONMENT "SHARDWISE_TEST_RANKS=${ranks}" PROCESSORS ${ranks})
        list(APPEND tests ${test})
    endforeach()
    if(arg_MPI_RANKS AND NOT TARGET shardwise::mpi)
        message(STATUS "shardwise: no MPI runs of test '${arg_NAME}', MPI was not found")
        set(arg_MPI_RANKS "")
    endif()
    foreach(ranks IN LISTS arg_MPI_RANKS)
        set(test ${arg_NAME}.mpi${ranks})
        add_test(NAME ${test} COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} $<TARGET_FILE:${target}>)
        # Open MPI keeps what it allocated until the process ends.
        set_tests_properties(${test} PROPERTIES PROCESSORS ${ranks}
            ENVIRONMENT "${SHARDWISE_MPI_ENVIRONMENT};LSAN_OPTIONS=detect_leaks=0")
        list(APPEND tests ${test})
    endforeach()

    set_property(TEST ${tests} APPEND PROPERTY ENVIRONMENT ${SHARDWISE_TEST_ENVIRONMENT})
    # What may take longest starts first.
    set_tests_properties(${tests} PROPERTIES TIMEOUT ${arg_TIMEOUT} COST ${arg_TIMEOUT} LABELS "${arg_LABELS}")
endfunction()

function(shardwise_compile_fail)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;SOURCE" "LIBRARIES")
    if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_SOURCE)
        message(FATAL_ERROR "shardwise_compile_fail: needs NAME and SOURCE, not '${arg_UNPARSED_ARGUMENTS}'")
    endif()
    if(SHARDWISE_SANITIZER)
        return()
    endif()
    if(NOT arg_LIBRARIES)
        set(arg_LIBRARIES shardwise::core)
    endif()
    shardwise_missing_tiers(missing ${arg_LIBRARIES})
    if(missing)
        message(STATUS "shardwise: no test '${arg_NAME}', it needs ${missing}")
        return()
    endif()

    # Never built: it is there to know the flags.
    set(target compile_fail_${arg_NAME})
    add_library(${target} OBJECT EXCLUDE_FROM_ALL ${arg_SOURCE})
    target_link_libraries(${target} PRIVATE shardwise_build_flags ${arg_LIBRARIES})
    target_compile_definitions(${target} PRIVATE SHARDWISE_COMPILED)  # errors are those of declarations
    set(parameters ${CMAKE_CURRENT_BINARY_DIR}/${target})
    # once for all that are compiled with the same flags
    string(MAKE_C_IDENTIFIER "${arg_LIBRARIES}" flags)
    set(header ${PROJECT_BINARY_DIR}/compile_fail/${flags}.hpp)
    cmake_path(ABSOLUTE_PATH arg_SOURCE OUTPUT_VARIABLE source)
    file(GENERATE OUTPUT ${parameters}.$<COMPILE_LANGUAGE>.cmake CONTENT "\
set(SOURCE [[${source}]])
set(HEADER [[${header}]])
set(COMPILE [[${CMAKE_CXX_COMPILER};${CMAKE_CXX20_STANDARD_COMPILE_OPTION};$<TARGET_PROPERTY:${target},COMPILE_OPTIONS>]])
set(INCLUDES [[$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>]])
set(IMPLICIT_INCLUDES [[${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES}]])
set(DEFINITIONS [[$<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>]])
" TARGET ${target})
    set(run ${CMAKE_COMMAND} -D PARAMETERS=${parameters}.CXX.cmake)
    set(script -P ${PROJECT_SOURCE_DIR}/cmake/compile_fail.cmake)
    get_property(precompiled GLOBAL PROPERTY SHARDWISE_PRECOMPILED)
    if(NOT flags IN_LIST precompiled)
        set_property(GLOBAL APPEND PROPERTY SHARDWISE_PRECOMPILED ${flags})
        file(CONFIGURE OUTPUT ${header} CONTENT "\
// Generated: what sources that must not compile include.
#include \"shardwise/comm/thread_world.hpp\"
#include \"shardwise/embedding/compose/plans.hpp\"
#include \"shardwise/embedding/layer.hpp\"
")
        add_test(NAME compile_fail_headers.${flags} COMMAND ${run} -D PRECOMPILE=ON ${script})
        set_tests_properties(compile_fail_headers.${flags} PROPERTIES TIMEOUT 120 FIXTURES_SETUP precompiled_${flags})
    endif()
    add_test(NAME ${arg_NAME} COMMAND ${run} ${script})
    set_tests_properties(${arg_NAME} PROPERTIES TIMEOUT 120 LABELS compile_fail FIXTURES_REQUIRED precompiled_${flags})
endfunction()
