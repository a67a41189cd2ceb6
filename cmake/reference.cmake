# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# cmake -D DOXYGEN=<program> -D REFERENCE=<folder> -P reference.cmake
#
# Makes the reference pages by REFERENCE/Doxyfile, in REFERENCE/html. Every warning is an error: a parameter that is not
# there, a link that leads nowhere, a command that Doxygen does not know, a type or function at namespace scope without
# a comment. What needs none are macros, and members whose names say it all.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE ${REFERENCE}/html)
execute_process(COMMAND ${DOXYGEN} ${REFERENCE}/Doxyfile COMMAND_ERROR_IS_FATAL ANY)
file(STRINGS ${REFERENCE}/warnings.txt warnings)
list(FILTER warnings EXCLUDE REGEX "Member .* of (class|struct|union|file) .* is not documented\\.$")
list(REMOVE_DUPLICATES warnings)
if(warnings)
    list(LENGTH warnings count)
    list(JOIN warnings "\n" lines)
    message("${lines}")
    message(FATAL_ERROR "${count} warnings of Doxygen: mend the comments")
endif()
message(STATUS "reference pages: ${REFERENCE}/html/index.html")
