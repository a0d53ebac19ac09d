# SPDX-License-Identifier: MIT
# libuv and libsodium as position-independent archives whose symbols stay inside libmuster.so.
#
# Debian's own libuv_a.a and libsodium.a hold code that cannot go into a shared library (libsodium.a links only with
# text relocations), and a shared libuv would be shared with the host, whose uv_* may be another version or a fork.
# So both are compiled here from Debian's source packages, fetched once into MUSTER_THIRD_PARTY for all presets.
# A packager without network puts unpacked sources there, or names them by MUSTER_UV_SOURCE and MUSTER_SODIUM_SOURCE.
# A release (cmake/make-release) has them all in third_party.

set(muster_bundled "${PROJECT_SOURCE_DIR}/third_party")

set(MUSTER_THIRD_PARTY "${CMAKE_BINARY_DIR}/third_party" CACHE PATH "Where fetched third-party sources are kept")
set(MUSTER_UV_SOURCE "" CACHE PATH "Unpacked libuv source; empty: Debian's libuv1, fetched with apt-get source")
set(MUSTER_SODIUM_SOURCE "" CACHE PATH "Unpacked libsodium source; empty: Debian's libsodium, fetched likewise")

function(muster_third_party package given out_folder)
    if(given)
        set(${out_folder} "${given}" PARENT_SCOPE)
        return()
    endif()
    if(EXISTS "${muster_bundled}/${package}")
        set(${out_folder} "${muster_bundled}/${package}" PARENT_SCOPE)
        return()
    endif()
    set(folder "${MUSTER_THIRD_PARTY}/${package}")
    if(NOT EXISTS "${folder}")
        message(STATUS "Fetching Debian's ${package} source")
        execute_process(COMMAND "${PROJECT_SOURCE_DIR}/cmake/fetch-source" ${package} "${MUSTER_THIRD_PARTY}"
                        RESULT_VARIABLE failed ERROR_VARIABLE why)
        if(failed)
            message(FATAL_ERROR "${why}")
        endif()
    endif()
    set(${out_folder} "${folder}" PARENT_SCOPE)
endfunction()

# Adds sources by path below a folder, leaving out those that this version of the library does not have.
function(muster_existing_sources out_list folder)
    set(found)
    foreach(name IN LISTS ARGN)
        if(EXISTS "${folder}/${name}")
            list(APPEND found "${folder}/${name}")
        endif()
    endforeach()
    set(${out_list} ${found} PARENT_SCOPE)
endfunction()

# Headers alone; used where JSON is read, and seen by no program that uses the library.
if(EXISTS "${muster_bundled}/nlohmann-json3")
    add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED)
    target_include_directories(nlohmann_json::nlohmann_json INTERFACE "${muster_bundled}/nlohmann-json3/single_include")
    set(nlohmann_json_VERSION "")
    foreach(part MAJOR MINOR PATCH)
        file(STRINGS "${muster_bundled}/nlohmann-json3/single_include/nlohmann/json.hpp" line LIMIT_COUNT 1
             REGEX "define NLOHMANN_JSON_VERSION_${part}")
        string(REGEX REPLACE ".* ([0-9]+).*" "\\1" line "${line}")
        list(APPEND nlohmann_json_VERSION ${line})
    endforeach()
    list(JOIN nlohmann_json_VERSION "." nlohmann_json_VERSION)
else()
    find_package(nlohmann_json 3.9 REQUIRED) # Debian: nlohmann-json3-dev
endif()

# libuv. Names differ a little between versions (linux-core.c became linux.c), hence the existence check.
muster_third_party(libuv1 "${MUSTER_UV_SOURCE}" uv)
set(MUSTER_UV_FOLDER "${uv}")
muster_existing_sources(uv_sources "${uv}/src"
    fs-poll.c idna.c inet.c random.c strscpy.c strtok.c thread-common.c threadpool.c timer.c uv-common.c
    uv-data-getter-setters.c version.c
    unix/async.c unix/core.c unix/dl.c unix/fs.c unix/getaddrinfo.c unix/getnameinfo.c unix/loop-watcher.c
    unix/loop.c unix/pipe.c unix/poll.c unix/process.c unix/proctitle.c unix/random-devurandom.c
    unix/random-getrandom.c unix/random-sysctl-linux.c unix/stream.c unix/tcp.c unix/thread.c
    unix/tty.c unix/udp.c unix/linux.c unix/linux-core.c unix/linux-inotify.c unix/linux-syscalls.c unix/epoll.c
    unix/procfs-exepath.c)
# Instead of libuv's unix/signal.c: see the top of the file.
list(APPEND uv_sources "${PROJECT_SOURCE_DIR}/src/context/uv_without_signals.c")
# Versions from 1.45 on have it in linux.c.
foreach(name epoll.c linux.c)
    set_source_files_properties("${uv}/src/unix/${name}" PROPERTIES
        COMPILE_OPTIONS "-include;${PROJECT_SOURCE_DIR}/src/context/uv_guard.h"
        OBJECT_DEPENDS "${PROJECT_SOURCE_DIR}/src/context/uv_guard.h")
endforeach()
add_library(muster_uv STATIC EXCLUDE_FROM_ALL ${uv_sources})
target_include_directories(muster_uv SYSTEM PUBLIC "$<BUILD_INTERFACE:${uv}/include>" PRIVATE "${uv}/src")
# uv.h marks every function visibility("default") and defines that mark unconditionally, so the attribute itself is
# renamed. Two functions carry __attribute__((destructor)), uv_library_shutdown among them: at exit or dlclose they
# would free the thread pool and the signal lock under loop threads of ours that still run, since a host may end while
# they live. Nothing needs them (the kernel takes it all back), so here they become ordinary functions.
target_compile_definitions(muster_uv PRIVATE _GNU_SOURCE _FILE_OFFSET_BITS=64 _LARGEFILE_SOURCE)
target_compile_options(muster_uv PRIVATE -w "-Dvisibility(x)=__visibility__(\"hidden\")" -Ddestructor=unused)

# libsodium, whole but for its hand-written assembler. Its own build chooses instruction sets per file and its code
# chooses among them at run time; the same is done here. The definitions are what its configure finds on Linux.
muster_third_party(libsodium "${MUSTER_SODIUM_SOURCE}" sodium)
set(MUSTER_SODIUM_FOLDER "${sodium}")
file(GLOB_RECURSE sodium_sources "${sodium}/src/libsodium/*.c")
add_library(muster_sodium STATIC EXCLUDE_FROM_ALL ${sodium_sources})
file(READ "${sodium}/configure.ac" sodium_configure)
string(REGEX MATCH "AC_INIT\\(\\[libsodium\\],\\[([^]]+)" found "${sodium_configure}")
set(VERSION "${CMAKE_MATCH_1}")
foreach(part MAJOR MINOR)
    string(REGEX MATCH "SODIUM_LIBRARY_VERSION_${part}=([0-9]+)" found "${sodium_configure}")
    set(SODIUM_LIBRARY_VERSION_${part} "${CMAKE_MATCH_1}")
endforeach()
set(SODIUM_LIBRARY_MINIMAL_DEF "")
file(READ "${sodium}/src/libsodium/include/sodium/version.h.in" version_h)
string(REPLACE "\"export.h\"" "\"sodium/export.h\"" version_h "${version_h}")
file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/sodium/sodium/version.h" CONTENT "${version_h}" @ONLY)
target_include_directories(muster_sodium SYSTEM
    PUBLIC "$<BUILD_INTERFACE:${sodium}/src/libsodium/include>" "$<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/sodium>"
    PRIVATE "${sodium}/src/libsodium/include/sodium" "${CMAKE_BINARY_DIR}/sodium/sodium")
target_compile_definitions(muster_sodium PUBLIC SODIUM_STATIC PRIVATE
    _GNU_SOURCE CONFIGURED=1 HAVE_ATOMIC_OPS=1 HAVE_C_VARARRAYS=1 HAVE_EXPLICIT_BZERO=1 HAVE_GETENTROPY=1
    HAVE_GETPID=1 HAVE_GETRANDOM=1 HAVE_INLINE_ASM=1 HAVE_LINUX_COMPATIBLE_GETRANDOM=1 HAVE_MADVISE=1 HAVE_MLOCK=1
    HAVE_MMAP=1 HAVE_MPROTECT=1 HAVE_NANOSLEEP=1 HAVE_POSIX_MEMALIGN=1 HAVE_PTHREAD=1 HAVE_SYS_MMAN_H=1
    HAVE_SYS_RANDOM_H=1 HAVE_WEAK_SYMBOLS=1
    "NATIVE_$<IF:$<STREQUAL:${CMAKE_C_BYTE_ORDER},BIG_ENDIAN>,BIG,LITTLE>_ENDIAN=1")
target_compile_options(muster_sodium PRIVATE -w -fno-strict-aliasing -fno-strict-overflow -fwrapv)
if(CMAKE_SIZEOF_VOID_P EQUAL 8)
    target_compile_definitions(muster_sodium PRIVATE HAVE_TI_MODE=1)
endif()
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    target_compile_definitions(muster_sodium PRIVATE HAVE_AVX2INTRIN_H=1 HAVE_AVXINTRIN_H=1 HAVE_CPUID=1
        HAVE_EMMINTRIN_H=1 HAVE_MMINTRIN_H=1 HAVE_PMMINTRIN_H=1 HAVE_RDRAND=1 HAVE_SMMINTRIN_H=1 HAVE_TMMINTRIN_H=1
        HAVE_WMMINTRIN_H=1)
    # gcc reads the target pragmas inside these files, clang does not.
    foreach(source IN LISTS sodium_sources)
        if(source MATCHES "avx2")
            set_source_files_properties("${source}" PROPERTIES COMPILE_OPTIONS -mavx2)
        elseif(source MATCHES "sse41|ssse3")
            set_source_files_properties("${source}" PROPERTIES COMPILE_OPTIONS -msse4.1)
        elseif(source MATCHES "aesni")
            set_source_files_properties("${source}" PROPERTIES COMPILE_OPTIONS "-maes;-mpclmul;-mavx")
        elseif(source MATCHES "randombytes_internal")
            set_source_files_properties("${source}" PROPERTIES COMPILE_OPTIONS -mrdrnd)
        elseif(source MATCHES "sodium/runtime\\.c$")
            # Whether the system keeps AVX registers is asked by an instruction libsodium counts as assembler. The rest
            # of what that name stands for is left out above.
            set_source_files_properties("${source}" PROPERTIES COMPILE_DEFINITIONS HAVE_AVX_ASM=1)
        endif()
    endforeach()
endif()

foreach(archive muster_uv muster_sodium)
    set_target_properties(${archive} PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden C_STANDARD 11)
    if(NOT MUSTER_SANITIZE)
        # Optimised whatever the preset: nobody debugs these, and -O1 ciphers would make the tests slow.
        target_compile_options(${archive} PRIVATE -O2)
    endif()
endforeach()
target_link_libraries(muster_uv PUBLIC Threads::Threads)

# AES-256-GCM of Debian's libipsec-mb-dev, x86-64 alone: of its archive only the functions for single messages are
# linked in, and their symbols stay inside. Without it links are sealed by libsodium alone.
add_library(muster_ipsec INTERFACE)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    find_path(MUSTER_IPSEC_MB_INCLUDE intel-ipsec-mb.h)
    find_library(MUSTER_IPSEC_MB NAMES libIPSec_MB.a)
    if(MUSTER_IPSEC_MB AND MUSTER_IPSEC_MB_INCLUDE)
        include(CheckCSourceCompiles)
        set(CMAKE_REQUIRED_INCLUDES "${MUSTER_IPSEC_MB_INCLUDE}")
        set(CMAKE_REQUIRED_LIBRARIES "${MUSTER_IPSEC_MB}")
        check_c_source_compiles("
            #include <intel-ipsec-mb.h>
            void aes_gcm_precomp_256_vaes_avx512(struct gcm_key_data *);
            void aes_gcm_enc_256_vaes_avx512(void), aes_gcm_dec_256_vaes_avx512(void);
            int main(void) {
                struct gcm_key_data data;
                aes_keyexp_256_enc_avx512(\"\", data.expanded_keys);
                aes_gcm_precomp_256_vaes_avx512(&data), aes_gcm_enc_256_vaes_avx512(), aes_gcm_dec_256_vaes_avx512();
                return aes_gcm_enc_256_avx_gen4 == aes_gcm_enc_256_sse;
            }" MUSTER_IPSEC_MB_FITS)
    endif()
    if(MUSTER_IPSEC_MB_FITS)
        if(NOT MUSTER_IPSEC_MB_INCLUDE MATCHES "/usr/include$") # the compiler looks there last, for a reason
            target_include_directories(muster_ipsec SYSTEM INTERFACE "${MUSTER_IPSEC_MB_INCLUDE}")
        endif()
        target_compile_definitions(muster_ipsec INTERFACE MUSTER_HAVE_IPSEC_MB)
        target_link_libraries(muster_ipsec INTERFACE "${MUSTER_IPSEC_MB}")
    else()
        message(STATUS "No fitting libipsec-mb-dev: links between hosts are sealed without AES instructions")
    endif()
endif()
