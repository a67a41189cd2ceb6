# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# cmake -D PARAMETERS=<file> [-D PRECOMPILE=ON] -P compile_fail.cmake
#
# A compile-fail source holds a program that compiles and, under `#ifdef SHARDWISE_EXPECT_FAIL`, what must not. Each
# line `// EXPECT: <sentence>` is text that the compiler must print, and `// EXPECT_LINE: <word> <word>...` words that
# one line of its output must have in this order. The test passes when
#   (a) without the macro the source compiles,
#   (b) with it the compiler's exit status is not zero,
#   (c) every expected sentence stands in the output,
#   (d) the output has exactly one line with `error:`.
# Each source is compiled twice, and where it is about layers most of that would be the same headers: PRECOMPILE compiles
# HEADER once, before all of these tests. A compiler that does not take it says so, and then the test fails.
cmake_minimum_required(VERSION 3.25)
include(${PARAMETERS})

list(REMOVE_ITEM INCLUDES ${IMPLICIT_INCLUDES})  # naming them again would change their order
list(TRANSFORM INCLUDES PREPEND "-isystem;")
list(TRANSFORM DEFINITIONS PREPEND "-D")
set(compile ${COMPILE} ${DEFINITIONS} ${INCLUDES} -fno-diagnostics-color)
set(ENV{LC_ALL} C)
if(PRECOMPILE)
    execute_process(COMMAND ${compile} -x c++-header ${HEADER} -o ${HEADER}.gch COMMAND_ERROR_IS_FATAL ANY)
    return()
endif()
file(STRINGS ${SOURCE} layers REGEX "#include \"shardwise/embedding/")
if(layers)
    list(APPEND compile -Winvalid-pch -include ${HEADER})
endif()
list(APPEND compile -fsyntax-only ${SOURCE})

execute_process(COMMAND ${compile} RESULT_VARIABLE status ERROR_VARIABLE output OUTPUT_VARIABLE output)
if(NOT status EQUAL 0)
    message(FATAL_ERROR "without SHARDWISE_EXPECT_FAIL it must compile, and does not:\n${output}")
endif()

execute_process(COMMAND ${compile} -DSHARDWISE_EXPECT_FAIL RESULT_VARIABLE status
    ERROR_VARIABLE output OUTPUT_VARIABLE output)
if(status EQUAL 0)
    message(FATAL_ERROR "with SHARDWISE_EXPECT_FAIL it must not compile, and does")
endif()

file(STRINGS ${SOURCE} expectations REGEX "// EXPECT: ")
if(NOT expectations)
    message(FATAL_ERROR "the source has no line '// EXPECT: <sentence>'")
endif()
foreach(line IN LISTS expectations)
    string(REGEX REPLACE ".*// EXPECT: " "" sentence "${line}")
    string(FIND "${output}" "${sentence}" position)
    if(position EQUAL -1)
        message(FATAL_ERROR "expected the compiler to print\n  ${sentence}\nbut it printed\n${output}")
    endif()
endforeach()

file(STRINGS ${SOURCE} lines REGEX "// EXPECT_LINE: ")
foreach(line IN LISTS lines)
    string(REGEX REPLACE ".*// EXPECT_LINE: " "" words "${line}")
    string(REPLACE " " "[^\n]*" pattern "${words}")
    if(NOT output MATCHES "${pattern}")
        message(FATAL_ERROR "expected one line with\n  ${words}\nbut the compiler printed\n${output}")
    endif()
endforeach()

string(REGEX MATCHALL "error:" errors "${output}")
list(LENGTH errors count)
if(NOT count EQUAL 1)
    message(FATAL_ERROR "expected exactly one error, but there are ${count}:\n${output}")
endif()
