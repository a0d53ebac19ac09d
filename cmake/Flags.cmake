# SPDX-License-Identifier: MIT
# What every target of ours is compiled with: muster_flags. What the shared library is linked with: muster_shared_flags.

add_library(muster_flags INTERFACE)
target_compile_features(muster_flags INTERFACE c_std_11 cxx_std_20)
target_compile_options(muster_flags INTERFACE -Wall -Wextra -Wpedantic -fno-omit-frame-pointer
    $<$<COMPILE_LANGUAGE:CXX>:-Wsuggest-override> $<$<BOOL:${MUSTER_WERROR}>:-Werror>)
# gcc 12 warns falsely of std::string + text, and of snprintf between elements of one array, where it optimises (gcc bug
# 105651); gcc 13 does not.
if(CMAKE_C_COMPILER_ID STREQUAL GNU AND CMAKE_BUILD_TYPE STREQUAL Release)
    target_compile_options(muster_flags INTERFACE -Wno-restrict)
endif()
target_compile_definitions(muster_flags INTERFACE _GNU_SOURCE)
target_link_libraries(muster_flags INTERFACE Threads::Threads)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug or Release" FORCE)
endif()

# muster_precompiled(<target>): its C++ files begin with the standard headers that most of them have.
function(muster_precompiled target)
    if(MUSTER_PCH)
        set(headers algorithm array atomic cerrno chrono condition_variable cstdint cstring deque functional map memory
            mutex optional set string string_view thread unordered_map utility variant vector)
        list(TRANSFORM headers REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>" OUTPUT_VARIABLE headers)
        target_precompile_headers(${target} PRIVATE ${headers})
        # gcc 12 forgets in a precompiled header that it is a system header, and shows false warnings of its inside.
        if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
            target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow)
        endif()
    endif()
endfunction()

# Third-party code is instrumented too: a race through an uninstrumented libuv would be invisible, or a false alarm.
if(MUSTER_SANITIZE)
    add_compile_options(-fsanitize=${MUSTER_SANITIZE} -fno-omit-frame-pointer -g)
    add_link_options(-fsanitize=${MUSTER_SANITIZE})
    add_compile_definitions(MUSTER_SANITIZED=1)
    if(MUSTER_SANITIZE MATCHES "undefined")
        add_compile_options(-fno-sanitize-recover=undefined)
    endif()
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU") # gcc 12 takes what is instrumented for uninitialised
        target_compile_options(muster_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
    endif()
    # TSan does not see fences (gcc says so with -Wtsan); code that needs one takes a read-modify-write under TSan.
    if(MUSTER_SANITIZE MATCHES "thread")
        add_compile_definitions(MUSTER_TSAN=1)
        # gcc 12's and clang 14's runtimes find no room where the kernel moves mappings by more than 30 bits of address.
        file(READ /proc/sys/vm/mmap_rnd_bits bits)
        if(bits GREATER 30)
            set(CMAKE_CROSSCOMPILING_EMULATOR setarch -R)
        endif()
    endif()
endif()

add_library(muster_shared_flags INTERFACE)
# nodelete: our threads and thread-local destructors may outlive a dlclose by the host.
target_link_options(muster_shared_flags INTERFACE -Wl,-z,nodelete -Wl,-z,now -Wl,-z,relro -Wl,--as-needed)
if(NOT MUSTER_SANITIZE)
    # libstdc++ and libgcc are linked in and hidden: the host may have others. A sanitizer's runtime lives in the
    # program and is resolved late, so those builds keep the shared ones.
    target_link_options(muster_shared_flags INTERFACE -static-libstdc++ -static-libgcc -Wl,-z,defs)
endif()
