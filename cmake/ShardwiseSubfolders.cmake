# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# shardwise_add_subfolders(): adds every subfolder of the current one that has a CMakeLists.txt.
include_guard(GLOBAL)

function(shardwise_add_subfolders)
    file(GLOB lists CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt)
    foreach(list IN LISTS lists)
        cmake_path(GET list PARENT_PATH folder)
        add_subdirectory(${folder})
    endforeach()
endfunction()
