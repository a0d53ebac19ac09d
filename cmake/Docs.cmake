# SPDX-License-Identifier: MIT
# Target `docs`: the site in <build>/docs/html: start page, guide, reference, with search, and dark where the reader's
# system is. doxygen-awesome-css gives it its looks, where that is installed.
find_program(MUSTER_DOXYGEN doxygen REQUIRED)
file(READ docs/Doxyfile doxyfile)
find_path(MUSTER_DOXYGEN_AWESOME doxygen-awesome.css PATHS /usr/share/doxygen-awesome-css NO_DEFAULT_PATH)
set(style "")
if(MUSTER_DOXYGEN_AWESOME)
    set(style "HTML_EXTRA_STYLESHEET = ${MUSTER_DOXYGEN_AWESOME}/doxygen-awesome.css ${MUSTER_DOXYGEN_AWESOME}/doxygen-awesome-sidebar-only.css")
endif()
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/Doxyfile" @ONLY CONTENT "${doxyfile}
PROJECT_NUMBER = ${PROJECT_VERSION}
OUTPUT_DIRECTORY = \"${PROJECT_BINARY_DIR}/docs\"
INPUT += \"${PROJECT_BINARY_DIR}/docs/bindings\"
STRIP_FROM_PATH = \"${PROJECT_SOURCE_DIR}/include\" \"${PROJECT_SOURCE_DIR}\"
${style}
")
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/docs")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS docs/Doxyfile)
add_custom_target(docs COMMAND "${CMAKE_COMMAND}" -E rm -rf "${PROJECT_BINARY_DIR}/docs/html" # pages of before
    COMMAND docs/site/bindings-reference "${PROJECT_BINARY_DIR}/docs/bindings"
    COMMAND "${MUSTER_DOXYGEN}" "${PROJECT_BINARY_DIR}/Doxyfile"
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}" VERBATIM COMMENT "Reference pages")

# Target `man`: a manual page for each header, muster_store.h(3), and for each structure, in <build>/docs/man/man3.
file(WRITE "${PROJECT_BINARY_DIR}/Doxyfile.man" "@INCLUDE = \"${PROJECT_BINARY_DIR}/Doxyfile\"
INPUT = include
USE_MDFILE_AS_MAINPAGE =
GENERATE_HTML = NO
GENERATE_MAN = YES
")
add_custom_target(man COMMAND "${CMAKE_COMMAND}" -E rm -rf "${PROJECT_BINARY_DIR}/docs/man"
    COMMAND "${MUSTER_DOXYGEN}" "${PROJECT_BINARY_DIR}/Doxyfile.man"
    COMMAND sh -c "cd '${PROJECT_BINARY_DIR}/docs/man/man3' && for page in *.h.3; do [ \$page = muster.h.3 ] || mv \$page muster_\$page || exit; done"
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}" VERBATIM COMMENT "Manual pages")
install(DIRECTORY "${PROJECT_BINARY_DIR}/docs/man/man3" DESTINATION "${CMAKE_INSTALL_MANDIR}" OPTIONAL)
