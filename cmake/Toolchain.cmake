# Compiler flags, ccache, lld and sanitizers, the same for every target.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2") # header asserts of LLVM stay on: Debian's LLVM has none of its own
# libstdc++ 12 uses what it deprecates itself (stable_sort).
add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wno-deprecated-declarations -Werror)
include_directories(${PROJECT_SOURCE_DIR})
add_compile_definitions(GRADC_VERSION="${PROJECT_VERSION}")
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
  # Not optimised: with the checks in them most files take longer to optimise than to run. The
  # exceptions are loops over numbers.
  set(CMAKE_CXX_FLAGS_RELEASE "-O0")
  set(GRADC_SANITIZE_HOT "runtime/cpu/|passes/planner/|ir/row/|/(Random|Init|Hash|FiniteCheck)[.]cpp|\
(ToyKernels|Gemm|Init|Peak|Planner|PlannerValidator)(Test)?[.]cpp")
  # The readers of foreign files count what they cover, for the fuzzers.
  set(GRADC_FUZZED "runtime/(data|checkpoint)/(TokenSource|Safetensors|Manifest|StrictJson)[.]cpp")
  if(NOT GRADC_SANITIZE MATCHES thread)
    set(GRADC_FUZZED_OPTIONS
        -fsanitize-coverage=inline-8bit-counters,pc-table,trace-cmp,indirect-calls)
  endif()
  add_compile_options(-fsanitize=${GRADC_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all -gline-tables-only
                      -fsanitize-ignorelist=${PROJECT_SOURCE_DIR}/cmake/SanitizerIgnore.txt)
  add_link_options(-fsanitize=${GRADC_SANITIZE})
endif()
