# SPDX-License-Identifier: MIT
# Carries out a port of vcpkg by stand-ins for the functions it calls, as their documentation describes them:
#   cmake -DPORT=<portfile.cmake> -DPACKAGES=<folder> -DBUILD=<folder> -P vcpkg.cmake
set(CURRENT_PACKAGES_DIR "${PACKAGES}")

function(run)
    execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_cmake_configure)
    cmake_parse_arguments(PARSE_ARGV 0 given "" "SOURCE_PATH" "OPTIONS")
    run("${CMAKE_COMMAND}" -S "${given_SOURCE_PATH}" -B "${BUILD}" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_LIBDIR=lib
        "-DCMAKE_INSTALL_PREFIX=${PACKAGES}" ${given_OPTIONS})
endfunction()

function(vcpkg_cmake_install)
    run("${CMAKE_COMMAND}" --build "${BUILD}" --parallel 2)
    run("${CMAKE_COMMAND}" --install "${BUILD}")
endfunction()

# Moves the files of find_package(): they have to find the rest from there.
function(vcpkg_cmake_config_fixup)
    cmake_parse_arguments(PARSE_ARGV 0 given "" "CONFIG_PATH" "")
    set(name muster) # of the port
    file(MAKE_DIRECTORY "${PACKAGES}/share")
    file(RENAME "${PACKAGES}/${given_CONFIG_PATH}" "${PACKAGES}/share/${name}")
    file(GLOB files "${PACKAGES}/share/${name}/*.cmake")
    foreach(file IN LISTS files) # one folder less lies between them and the root
        file(READ "${file}" text)
        string(REPLACE "/../../../" "/../../" text "${text}")
        string(REGEX REPLACE "get_filename_component\\(_IMPORT_PREFIX \"\\\${_IMPORT_PREFIX}\" PATH\\)\n" "" text "${text}")
        string(REPLACE "get_filename_component(_IMPORT_PREFIX \"\${CMAKE_CURRENT_LIST_FILE}\" PATH)\n"
            "get_filename_component(_IMPORT_PREFIX \"\${CMAKE_CURRENT_LIST_DIR}/../..\" ABSOLUTE)\n" text "${text}")
        file(WRITE "${file}" "${text}")
    endforeach()
endfunction()

function(vcpkg_fixup_pkgconfig)
    file(GLOB files "${PACKAGES}/lib/pkgconfig/*.pc")
    if(NOT files)
        message(FATAL_ERROR "no file for pkg-config is installed")
    endif()
endfunction()

function(vcpkg_install_copyright)
    cmake_parse_arguments(PARSE_ARGV 0 given "" "" "FILE_LIST")
    set(text "")
    foreach(file IN LISTS given_FILE_LIST)
        file(READ "${file}" part)
        string(APPEND text "${part}\n")
    endforeach()
    file(WRITE "${PACKAGES}/share/muster/copyright" "${text}")
endfunction()

include("${PORT}")
