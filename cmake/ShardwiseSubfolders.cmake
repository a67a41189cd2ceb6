# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# shardwise_add_subfolders([<suffix>]): adds every subfolder of the current one that has a CMakeLists.txt. The suffix
# goes to the names of their build folders, where programs of the same name as a folder lie beside these.
include_guard(GLOBAL)

function(shardwise_add_subfolders)
    file(GLOB lists CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt)
    foreach(list IN LISTS lists)
        cmake_path(GET list PARENT_PATH folder)
        cmake_path(GET folder FILENAME name)
        add_subdirectory(${folder} ${name}${ARGV0})
    endforeach()
endfunction()
