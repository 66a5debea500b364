# Configures, builds and tests the runtime alone under one of the sanitizers' presets.
#   cmake -D PRESET=asan|tsan -D SOURCE=folder -D BINARY=folder -P sanitize.cmake
if(PRESET STREQUAL tsan)
  set(targets runtime_tests) # the others start no threads
  set(tests "^runtime_tests$")
else()
  set(targets all)
  set(tests ".")
endif()
foreach(command
        "${CMAKE_COMMAND};--preset;${PRESET};-B;${BINARY}"
        "${CMAKE_COMMAND};--build;${BINARY};--parallel;2;--target;${targets}"
        "${CMAKE_CTEST_COMMAND};--test-dir;${BINARY};--output-on-failure;--parallel;2;--tests-regex;${tests}")
  execute_process(COMMAND ${command} WORKING_DIRECTORY ${SOURCE} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
