# SPDX-License-Identifier: MIT
# An overlay port of the release around it. The library is a shared one in any triplet: a process has one state of Muster.
set(VCPKG_POLICY_DLLS_IN_STATIC_LIBRARY enabled)
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT EXISTS "${SOURCE_PATH}/third_party")
    message(FATAL_ERROR "${SOURCE_PATH} is no unpacked release (cmake/make-release): it has no third_party")
endif()
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}" OPTIONS -DMUSTER_LIBRARY_ONLY=ON -DMUSTER_UNITY=ON)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/Muster)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE" "${SOURCE_PATH}/debian/copyright")
