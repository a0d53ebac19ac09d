# SPDX-License-Identifier: MIT
# The bill of materials that is installed: what is compiled or linked into libmuster.so, with versions (SPDX 2.3).
string(TIMESTAMP sbom_created "%Y-%m-%dT%H:%M:%SZ" UTC) # SOURCE_DATE_EPOCH, if it is set
set(sbom_packages)
set(sbom_relationships)

function(muster_sbom name version license source copyright)
    string(APPEND sbom_packages ",
    {
      \"SPDXID\": \"SPDXRef-${name}\",
      \"name\": \"${name}\",
      \"versionInfo\": \"${version}\",
      \"downloadLocation\": \"${source}\",
      \"filesAnalyzed\": false,
      \"licenseConcluded\": \"${license}\",
      \"licenseDeclared\": \"${license}\",
      \"copyrightText\": \"${copyright}\"
    }")
    string(APPEND sbom_relationships ",
    {
      \"spdxElementId\": \"SPDXRef-muster\",
      \"relationshipType\": \"CONTAINS\",
      \"relatedSpdxElement\": \"SPDXRef-${name}\"
    }")
    set(sbom_packages "${sbom_packages}" PARENT_SCOPE)
    set(sbom_relationships "${sbom_relationships}" PARENT_SCOPE)
endfunction()

# muster_version_in(<file> <regular expression with one group> <variable>)
function(muster_version_in file expression out)
    file(STRINGS "${file}" line REGEX "${expression}" LIMIT_COUNT 1)
    string(REGEX MATCH "${expression}" found "${line}")
    set(${out} "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()

foreach(part MAJOR MINOR PATCH)
    muster_version_in("${MUSTER_UV_FOLDER}/include/uv/version.h" "define UV_VERSION_${part} +([0-9]+)" uv_${part})
endforeach()
muster_sbom(libuv "${uv_MAJOR}.${uv_MINOR}.${uv_PATCH}" MIT "https://libuv.org" "libuv project contributors")
muster_version_in("${MUSTER_SODIUM_FOLDER}/configure.ac" "AC_INIT\\(\\[libsodium\\],\\[([^]]+)" sodium_version)
muster_sbom(libsodium "${sodium_version}" ISC "https://libsodium.org" "Frank Denis")
muster_sbom(nlohmann-json "${nlohmann_json_VERSION}" MIT "https://github.com/nlohmann/json" "Niels Lohmann")
if(MUSTER_IPSEC_MB_FITS)
    muster_version_in("${MUSTER_IPSEC_MB_INCLUDE}/intel-ipsec-mb.h" "define IMB_VERSION_STR +\"([0-9.]+)" ipsec_version)
    muster_sbom(intel-ipsec-mb "${ipsec_version}" BSD-3-Clause "https://github.com/intel/intel-ipsec-mb" "Intel Corporation")
endif()
configure_file(cmake/sbom.spdx.json.in sbom.spdx.json @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/sbom.spdx.json" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
