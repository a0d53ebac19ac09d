# SPDX-License-Identifier: MIT
# libmuster.so, and muster_core: the same objects as an archive for tests that look inside.

set(muster_rooms base context queue process epoch atomic stream transport plugin serve broker store rendezvous agent cluster)
set(muster_sources)
foreach(room IN LISTS muster_rooms)
    file(GLOB found CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${room}/*.cpp")
    list(APPEND muster_sources ${found})
endforeach()

add_library(muster_objects OBJECT ${muster_sources})
target_include_directories(muster_objects PUBLIC "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
target_compile_definitions(muster_objects PRIVATE
    MUSTER_VERSION_STRING="${PROJECT_VERSION}" MUSTER_VERSION_MAJOR=${PROJECT_VERSION_MAJOR}
    MUSTER_VERSION_MINOR=${PROJECT_VERSION_MINOR} MUSTER_VERSION_PATCH=${PROJECT_VERSION_PATCH}
    MUSTER_PLUGIN_DIR="${MUSTER_PLUGIN_DIR}")
target_link_libraries(muster_objects PUBLIC muster_flags muster_uv muster_sodium)
set_target_properties(muster_objects PROPERTIES CXX_VISIBILITY_PRESET hidden)

add_library(muster_core STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:muster_objects>)
target_include_directories(muster_core PUBLIC "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
target_link_libraries(muster_core PUBLIC muster_flags muster_uv muster_sodium ${CMAKE_DL_LIBS})

set(map "${PROJECT_SOURCE_DIR}/cmake/muster.map")
add_library(muster SHARED $<TARGET_OBJECTS:muster_objects>)
add_library(Muster::muster ALIAS muster)
target_include_directories(muster PUBLIC
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
target_link_libraries(muster PRIVATE $<BUILD_INTERFACE:muster_shared_flags> $<BUILD_INTERFACE:muster_uv>
    $<BUILD_INTERFACE:muster_sodium> ${CMAKE_DL_LIBS})
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
endfunction()
