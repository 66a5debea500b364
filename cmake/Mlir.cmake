# MLIR, its precompiled header, and TableGen.
execute_process(COMMAND llvm-config-22 --prefix OUTPUT_VARIABLE GRADC_LLVM_PREFIX
                OUTPUT_STRIP_TRAILING_WHITESPACE)
list(APPEND CMAKE_PREFIX_PATH ${GRADC_LLVM_PREFIX}/lib/cmake)
find_package(MLIR 22.1 REQUIRED CONFIG)
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)
set(GRADC_GEN_DIR ${PROJECT_BINARY_DIR}/generated)

# The first library builds the precompiled header, the others reuse it.
function(gradc_mlir_target name)
  target_include_directories(${name} SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
  target_include_directories(${name} PRIVATE ${GRADC_GEN_DIR})
  add_dependencies(${name} gradc_ir_gen gradc_passes_gen)
  get_target_property(type ${name} TYPE)
  if(type STREQUAL EXECUTABLE) # -fPIC as the libraries have it: a precompiled header insists
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE -fPIC)
  endif()
  get_property(first GLOBAL PROPERTY GRADC_PCH_OWNER)
  if(first)
    target_precompile_headers(${name} REUSE_FROM ${first})
  else()
    set_property(GLOBAL PROPERTY GRADC_PCH_OWNER ${name})
    target_precompile_headers(${name} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/MlirPch.h)
  endif()
endfunction()

# gradc_tablegen(TARGET file.td  out=generator-flags ...)
function(gradc_tablegen target td)
  get_filename_component(folder ${td} DIRECTORY)
  file(MAKE_DIRECTORY ${GRADC_GEN_DIR}/${folder})
  foreach(rule ${ARGN})
    string(REPLACE "=" ";" parts ${rule})
    list(POP_FRONT parts out)
    string(REPLACE "," ";" flags "${parts}")
    string(REPLACE ":" "=" flags "${flags}")
    file(GLOB inputs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.td)
    add_custom_command(
      OUTPUT ${GRADC_GEN_DIR}/${folder}/${out}
      COMMAND ${GRADC_LLVM_PREFIX}/bin/mlir-tblgen ${flags} -I ${MLIR_INCLUDE_DIRS} -I ${PROJECT_SOURCE_DIR}
              ${PROJECT_SOURCE_DIR}/${td} -o ${GRADC_GEN_DIR}/${folder}/${out}
      DEPENDS ${inputs})
    set_property(GLOBAL APPEND PROPERTY ${target}_OUTPUTS ${GRADC_GEN_DIR}/${folder}/${out})
  endforeach()
endfunction()

gradc_tablegen(gradc_ir_gen ir/NnOps.td
  NnDialect.h.inc=-gen-dialect-decls,-dialect:nn NnDialect.cpp.inc=-gen-dialect-defs,-dialect:nn
  NnEnums.h.inc=-gen-enum-decls NnEnums.cpp.inc=-gen-enum-defs
  NnAttrs.h.inc=-gen-attrdef-decls,-attrdefs-dialect:nn NnAttrs.cpp.inc=-gen-attrdef-defs,-attrdefs-dialect:nn
  NnOps.h.inc=-gen-op-decls NnOps.cpp.inc=-gen-op-defs
  NnOps.md=-gen-dialect-doc,-dialect:nn)
gradc_tablegen(gradc_ir_gen ir/NnInterfaces.td
  NnInterfaces.h.inc=-gen-op-interface-decls NnInterfaces.cpp.inc=-gen-op-interface-defs)
gradc_tablegen(gradc_ir_gen ir/ExecOps.td
  ExecDialect.h.inc=-gen-dialect-decls,-dialect:exec ExecDialect.cpp.inc=-gen-dialect-defs,-dialect:exec
  ExecEnums.h.inc=-gen-enum-decls ExecEnums.cpp.inc=-gen-enum-defs
  ExecAttrs.h.inc=-gen-attrdef-decls,-attrdefs-dialect:exec
  ExecAttrs.cpp.inc=-gen-attrdef-defs,-attrdefs-dialect:exec
  ExecOps.h.inc=-gen-op-decls ExecOps.cpp.inc=-gen-op-defs
  ExecOps.md=-gen-dialect-doc,-dialect:exec)
gradc_tablegen(gradc_passes_gen passes/Passes.td
  Passes.h.inc=-gen-pass-decls,-name:Gradc Passes.md=-gen-pass-doc)
foreach(target gradc_ir_gen gradc_passes_gen)
  get_property(outputs GLOBAL PROPERTY ${target}_OUTPUTS)
  add_custom_target(${target} DEPENDS ${outputs})
endforeach()
