# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# shardwise_compile(<target> <units> [<definition>...])
#
# The compiled form of the core tier: a static library of all its bodies (*.ipp), in so many translation units, and the
# definition that makes headers declare only. Of an installed shardwise, too: bodies are compiled in the project that uses
# them, with its flags. A unit's bodies come from neighbouring files, so that units are alike.
include_guard(GLOBAL)

function(shardwise_compile TARGET UNITS)
    get_target_property(bodies shardwise::core HEADER_SET_bodies)
    get_target_property(include shardwise::core HEADER_DIRS_bodies)
    list(LENGTH bodies count)
    set(sources "")
    math(EXPR last "${UNITS} - 1")
    foreach(unit RANGE ${last})
        set(text "// Generated: bodies of shardwise.\n#define SHARDWISE_SOURCE\n")
        math(EXPR at "${unit}")
        while(at LESS count)
            list(GET bodies ${at} body)
            cmake_path(RELATIVE_PATH body BASE_DIRECTORY ${include})
            string(APPEND text "#include \"${body}\"\n")
            math(EXPR at "${at} + ${UNITS}")
        endwhile()
        set(source ${CMAKE_CURRENT_BINARY_DIR}/${TARGET}/bodies_${unit}.cpp)
        file(CONFIGURE OUTPUT ${source} CONTENT "${text}")
        list(APPEND sources ${source})
    endforeach()
    add_library(${TARGET} STATIC ${sources})
    target_compile_definitions(${TARGET} PUBLIC SHARDWISE_COMPILED ${ARGN})
    target_link_libraries(${TARGET} PUBLIC shardwise::core)
endfunction()
