# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Installs every tier that is present, one export file a tier, so that
# `find_package(shardwise COMPONENTS core dense)` looks for the dependencies of those tiers alone.
include_guard(GLOBAL)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_DATADIR}/cmake/shardwise)
set(SHARDWISE_TIER_PACKAGES "")
foreach(tier IN LISTS SHARDWISE_TIERS_PRESENT)
    install(TARGETS shardwise_${tier} EXPORT shardwise-${tier} FILE_SET HEADERS FILE_SET bodies)
    install(EXPORT shardwise-${tier} NAMESPACE shardwise:: DESTINATION ${package_dir})
    get_target_property(packages shardwise_${tier} SHARDWISE_PACKAGES)
    string(APPEND SHARDWISE_TIER_PACKAGES "set(shardwise_${tier}_PACKAGES ${packages})\n")
endforeach()

configure_package_config_file(cmake/shardwiseConfig.cmake.in ${PROJECT_BINARY_DIR}/shardwiseConfig.cmake
    INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/shardwiseConfigVersion.cmake
    COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES
    ${PROJECT_BINARY_DIR}/shardwiseConfig.cmake ${PROJECT_BINARY_DIR}/shardwiseConfigVersion.cmake
    cmake/FindCBLAS.cmake cmake/FindoneDNN.cmake cmake/FindxxHash.cmake cmake/ShardwiseCompiled.cmake
    DESTINATION ${package_dir})
