# SPDX-License-Identifier: MIT
# Target `docs`: reference pages in <build>/docs/html.
find_program(MUSTER_DOXYGEN doxygen REQUIRED)
file(READ docs/Doxyfile doxyfile)
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/Doxyfile" @ONLY CONTENT "${doxyfile}
PROJECT_NUMBER = ${PROJECT_VERSION}
OUTPUT_DIRECTORY = \"${PROJECT_BINARY_DIR}/docs\"
")
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/docs")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS docs/Doxyfile)
add_custom_target(docs COMMAND "${MUSTER_DOXYGEN}" "${PROJECT_BINARY_DIR}/Doxyfile"
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}" VERBATIM COMMENT "Reference pages")
