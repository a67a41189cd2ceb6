# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# shardwise_tier(<name> HEADERS <glob>... [EXCEPT <regex>...] PACKAGES <package>... LIBRARIES <target>...)
#
# A body x.ipp belongs to the header x.hpp beside it, which includes it unless SHARDWISE_COMPILED is defined.
#
# Declares the interface target shardwise::<name>: the headers that the globs match under include/shardwise, on top of
# `core` and the given libraries. Globs look into subfolders; one without a folder looks everywhere. `core` must be
# there; any other tier is left out when one of its packages is not found. A tier without headers is fine.
include_guard(GLOBAL)

function(shardwise_tier NAME)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS;EXCEPT;PACKAGES;LIBRARIES")
    if(NOT NAME IN_LIST SHARDWISE_TIERS)
        return()
    endif()

    foreach(package IN LISTS arg_PACKAGES)
        if(NAME STREQUAL "core")
            find_package(${package} REQUIRED)
        else()
            find_package(${package} QUIET)
        endif()
        if(NOT ${package}_FOUND)
            message(STATUS "shardwise: no tier '${NAME}', ${package} was not found")
            return()
        endif()
    endforeach()

    set(include ${PROJECT_SOURCE_DIR}/include)
    list(TRANSFORM arg_HEADERS PREPEND ${include}/shardwise/)
    file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${arg_HEADERS})
    list(TRANSFORM arg_HEADERS REPLACE "\\.hpp$" ".ipp" OUTPUT_VARIABLE globs)
    list(FILTER globs INCLUDE REGEX "\\.ipp$")
    set(bodies "")
    if(globs)
        file(GLOB_RECURSE bodies CONFIGURE_DEPENDS ${globs})
    endif()
    foreach(pattern IN LISTS arg_EXCEPT)
        list(FILTER headers EXCLUDE REGEX "${pattern}")
        string(REPLACE ".hpp$" ".ipp$" pattern "${pattern}")
        list(FILTER bodies EXCLUDE REGEX "${pattern}")
    endforeach()

    set(target shardwise_${NAME})
    add_library(${target} INTERFACE)
    add_library(shardwise::${NAME} ALIAS ${target})
    target_compile_features(${target} INTERFACE cxx_std_20)
    target_sources(${target} INTERFACE FILE_SET HEADERS BASE_DIRS ${include} FILES ${headers})
    target_sources(${target} INTERFACE FILE_SET bodies TYPE HEADERS BASE_DIRS ${include} FILES ${bodies})
    target_link_libraries(${target} INTERFACE ${arg_LIBRARIES})
    if(NOT NAME STREQUAL "core")
        target_link_libraries(${target} INTERFACE shardwise_core)
    endif()
    set_target_properties(${target} PROPERTIES
        EXPORT_NAME ${NAME} SHARDWISE_PACKAGES "${arg_PACKAGES}" INTERFACE_HEADER_SETS_TO_VERIFY HEADERS)
    # Device headers need nvcc: tests/cuda compiles them.
    if(PROJECT_IS_TOP_LEVEL AND NOT NAME STREQUAL "cuda")
        set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
    endif()
    set_property(GLOBAL APPEND PROPERTY SHARDWISE_TIERS_PRESENT ${NAME})
endfunction()
