# Compiler flags, ccache, lld and sanitizers, the same for every target.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2") # header asserts of LLVM stay on: Debian's LLVM has none of its own
# libstdc++ 12 uses what it deprecates itself (stable_sort).
add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wno-deprecated-declarations -Werror)
include_directories(${PROJECT_SOURCE_DIR})
add_compile_definitions(FMT_HEADER_ONLY GRADC_VERSION="${PROJECT_VERSION}")
find_program(GRADC_LLD NAMES ld.lld-22 ld.lld)
if(GRADC_LLD)
  add_link_options(--ld-path=${GRADC_LLD})
endif()
find_program(GRADC_CCACHE ccache)
if(GRADC_CCACHE)
  # A precompiled header defeats ccache unless its time stamp is left out and the sloppiness allowed.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${GRADC_CCACHE})
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
endif()
if(GRADC_SANITIZE)
  add_compile_options(-fsanitize=${GRADC_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g1)
  add_link_options(-fsanitize=${GRADC_SANITIZE})
endif()
