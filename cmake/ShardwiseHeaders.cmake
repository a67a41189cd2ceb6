# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# shardwise_include_all(<file> <tier>...): writes a source file that includes every header of the tiers.
include_guard(GLOBAL)

function(shardwise_include_all FILE)
    set(lines "// Generated: every header of ${ARGN}.\n")
    foreach(tier IN LISTS ARGN)
        get_target_property(headers shardwise_${tier} HEADER_SET)
        foreach(header IN LISTS headers)
            cmake_path(RELATIVE_PATH header BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/include)
            string(APPEND lines "#include \"${header}\"\n")
        endforeach()
    endforeach()
    file(CONFIGURE OUTPUT ${FILE} CONTENT "${lines}")
endfunction()
