# SPDX-License-Identifier: MIT
# libmuster.so, and muster_core: the same objects as an archive for tests that look inside.

set(muster_modules base context queue process epoch atomic stream transport plugin serve broker am message message_queue socket forwarder store rendezvous group agent cluster memory metrics)
set(muster_sources)
foreach(module IN LISTS muster_modules)
    file(GLOB_RECURSE found CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${module}/*.cpp")
    list(APPEND muster_sources ${found})
endforeach()

# muster_unity(<target>): with MUSTER_UNITY the C++ files of each folder of a target are compiled as one. Names in
# anonymous namespaces are therefore unique within a folder.
function(muster_unity target)
    if(NOT MUSTER_UNITY)
        return()
    endif()
    get_target_property(sources ${target} SOURCES)
    get_target_property(folder ${target} SOURCE_DIR)
    foreach(source IN LISTS sources)
        cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${folder}" OUTPUT_VARIABLE path)
        cmake_path(GET path PARENT_PATH group)
        file(RELATIVE_PATH group "${PROJECT_SOURCE_DIR}" "${group}")
        string(MAKE_C_IDENTIFIER "${group}" group)
        set_source_files_properties("${source}" TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP "${group}")
    endforeach()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

add_library(muster_objects OBJECT ${muster_sources})
muster_unity(muster_objects)
set_source_files_properties("${PROJECT_SOURCE_DIR}/src/base/aes_gcm.cpp" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
muster_precompiled(muster_objects)
target_include_directories(muster_objects PUBLIC "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
target_compile_definitions(muster_objects PRIVATE
    MUSTER_VERSION_STRING="${PROJECT_VERSION}" MUSTER_VERSION_MAJOR=${PROJECT_VERSION_MAJOR}
    MUSTER_VERSION_MINOR=${PROJECT_VERSION_MINOR} MUSTER_VERSION_PATCH=${PROJECT_VERSION_PATCH}
    MUSTER_PLUGIN_DIR="${MUSTER_PLUGIN_DIR}")
target_link_libraries(muster_objects PUBLIC muster_flags muster_uv muster_sodium PRIVATE muster_ipsec nlohmann_json::nlohmann_json)
set_target_properties(muster_objects PROPERTIES CXX_VISIBILITY_PRESET hidden)

add_library(muster_core STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:muster_objects>)
target_include_directories(muster_core PUBLIC "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
target_link_libraries(muster_core PUBLIC muster_flags muster_uv muster_sodium muster_ipsec ${CMAKE_DL_LIBS})

set(map "${PROJECT_SOURCE_DIR}/cmake/muster.map")
add_library(muster SHARED $<TARGET_OBJECTS:muster_objects>)
add_library(Muster::muster ALIAS muster)
target_include_directories(muster PUBLIC
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
target_link_libraries(muster PRIVATE $<BUILD_INTERFACE:muster_shared_flags> $<BUILD_INTERFACE:muster_uv>
    $<BUILD_INTERFACE:muster_sodium> $<BUILD_INTERFACE:muster_ipsec> ${CMAKE_DL_LIBS})
target_link_options(muster PRIVATE "-Wl,--version-script=${map}" -Wl,--exclude-libs,ALL)
set_target_properties(muster PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${MUSTER_SOVERSION}
    LINK_DEPENDS "${map}" LINKER_LANGUAGE CXX)

# A host looks for plug-ins of the build tree here; see MUSTER_PLUGIN_PATH.
set(MUSTER_BUILD_PLUGIN_DIR "${PROJECT_BINARY_DIR}/plugins")

# A loadable transport: muster_plugin(<name> <sources...>) makes plugins/muster-<name>.so, seeing include/ alone.
function(muster_plugin name)
    add_library(plugin_${name} MODULE ${ARGN})
    target_include_directories(plugin_${name} PRIVATE "${PROJECT_SOURCE_DIR}/include")
    target_link_libraries(plugin_${name} PRIVATE muster_flags)
    set_target_properties(plugin_${name} PROPERTIES PREFIX "" OUTPUT_NAME muster-${name}
        LIBRARY_OUTPUT_DIRECTORY "${MUSTER_BUILD_PLUGIN_DIR}" C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden)
    muster_unity(plugin_${name})
    get_target_property(sources plugin_${name} SOURCES)
    if(sources MATCHES "[.]cpp")
        muster_precompiled(plugin_${name})
    endif()
endfunction()
