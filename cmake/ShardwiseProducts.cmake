# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# By what the tier `dense` multiplies floats: oneDNN where a release that it knows is there, otherwise OpenBLAS.
include_guard(GLOBAL)

if(TARGET shardwise_dense)
    set(products "OpenBLAS")
    if(SHARDWISE_ONEDNN)
        find_package(oneDNN QUIET)
        if(NOT oneDNN_FOUND)
            string(APPEND products ", oneDNN was not found")
        elseif(oneDNN_VERSION VERSION_LESS 2 OR oneDNN_VERSION VERSION_GREATER_EQUAL 4)
            string(APPEND products ", oneDNN ${oneDNN_VERSION} is no release that shardwise knows (2 and 3)")
        else()
            set(products "oneDNN ${oneDNN_VERSION}")
            target_link_libraries(shardwise_dense INTERFACE oneDNN::oneDNN)
            target_compile_definitions(shardwise_dense INTERFACE SHARDWISE_ONEDNN)
            set_target_properties(shardwise_dense PROPERTIES SHARDWISE_PACKAGES "CBLAS;oneDNN")
        endif()
    endif()
    message(STATUS "shardwise: products of floats by ${products}")
endif()
