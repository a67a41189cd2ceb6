# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# The target `reference`: pages from the headers' comments, in build/<preset>/reference/html. SHARDWISE_REFERENCE_COMMAND
# makes them. Both are there where Doxygen is found.
include_guard(GLOBAL)

find_program(SHARDWISE_DOXYGEN doxygen DOC "Makes the reference pages")
if(SHARDWISE_DOXYGEN)
    set(SHARDWISE_REFERENCE ${PROJECT_BINARY_DIR}/reference)
    configure_file(docs/reference/Doxyfile.in ${SHARDWISE_REFERENCE}/Doxyfile @ONLY)
    set(SHARDWISE_REFERENCE_COMMAND ${CMAKE_COMMAND} -D DOXYGEN=${SHARDWISE_DOXYGEN} -D REFERENCE=${SHARDWISE_REFERENCE}
        -P ${PROJECT_SOURCE_DIR}/cmake/reference.cmake)
    add_custom_target(reference COMMAND ${SHARDWISE_REFERENCE_COMMAND} VERBATIM)
endif()
