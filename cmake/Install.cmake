# SPDX-License-Identifier: MIT
# cmake --install: library, headers, find_package(Muster) and pkg-config files.
include(CMakePackageConfigHelpers)

install(TARGETS muster EXPORT MusterTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")
# The licence, and those of what is compiled into the library, whose texts have to be in every copy.
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/debian/copyright" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

set(muster_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Muster")
install(EXPORT MusterTargets NAMESPACE Muster:: DESTINATION "${muster_cmake_dir}")
configure_package_config_file(cmake/MusterConfig.cmake.in MusterConfig.cmake INSTALL_DESTINATION "${muster_cmake_dir}"
    PATH_VARS MUSTER_PLUGIN_DIR CMAKE_INSTALL_INCLUDEDIR NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(MusterConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/MusterConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/MusterConfigVersion.cmake"
    DESTINATION "${muster_cmake_dir}")

# Paths in the .pc files follow the file itself, so that an installed tree may be moved.
file(RELATIVE_PATH muster_pc_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
foreach(file muster muster-plugin)
    configure_file(cmake/${file}.pc.in ${file}.pc @ONLY)
    install(FILES "${CMAKE_CURRENT_BINARY_DIR}/${file}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endforeach()
