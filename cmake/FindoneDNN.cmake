# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# oneDNN, whose dnnl_sgemm multiplies floats: oneDNN::oneDNN. Releases 2 and 3. Set oneDNN_ROOT to look elsewhere first.
find_path(oneDNN_INCLUDE_DIR oneapi/dnnl/dnnl.h)
find_library(oneDNN_LIBRARY dnnl)
set(oneDNN_VERSION "")
if(oneDNN_INCLUDE_DIR AND EXISTS ${oneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h)
    file(STRINGS ${oneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h lines REGEX "#define DNNL_VERSION_(MAJOR|MINOR|PATCH) ")
    foreach(part IN ITEMS MAJOR MINOR PATCH)
        string(REGEX MATCH "DNNL_VERSION_${part} +([0-9]+)" found "${lines}")
        list(APPEND oneDNN_VERSION ${CMAKE_MATCH_1})
    endforeach()
    list(JOIN oneDNN_VERSION "." oneDNN_VERSION)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(oneDNN REQUIRED_VARS oneDNN_LIBRARY oneDNN_INCLUDE_DIR VERSION_VAR oneDNN_VERSION)
mark_as_advanced(oneDNN_INCLUDE_DIR oneDNN_LIBRARY)

if(oneDNN_FOUND AND NOT TARGET oneDNN::oneDNN)
    add_library(oneDNN::oneDNN UNKNOWN IMPORTED)
    set_target_properties(oneDNN::oneDNN PROPERTIES
        IMPORTED_LOCATION "${oneDNN_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${oneDNN_INCLUDE_DIR}"
        INTERFACE_LINK_LIBRARIES "${CMAKE_DL_LIBS}")
endif()
