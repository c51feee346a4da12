# Build rules shared by every folder of src/. A folder is one library with a written dependency list:
#
#   quire_library(text DEPS base SOURCES bpe.cc ... TESTS bpe_test.cc ... LIBS PkgConfig::PCRE2)
#
# DEPS names other quire folders and is what tools/check_layers.py holds the includes against; LIBS names
# third-party targets, which stay private to the folder's sources.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_program(QUIRE_CCACHE ccache)
if(QUIRE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${QUIRE_CCACHE}")
endif()

add_library(quire_flags INTERFACE)
# -Wno-restrict: GCC 12 warns about its own std::string (bug 105651).
# -ffp-contract=off: a fused multiply-add is written where it is meant, so results do not depend on the
# optimiser (docs/architecture.md, "Same output whatever the load").
target_compile_options(quire_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  -ffp-contract=off)
if(QUIRE_WERROR)
  target_compile_options(quire_flags INTERFACE -Werror)
endif()
target_include_directories(quire_flags INTERFACE "${CMAKE_SOURCE_DIR}/src")
target_link_libraries(quire_flags INTERFACE Threads::Threads)
if(QUIRE_SANITIZE)
  string(REPLACE ";" "," sanitizers "${QUIRE_SANITIZE}")
  # GCC's manual: with sanitizers its warning of uninitialized values is wrong at times. The other presets have it.
  target_compile_options(quire_flags INTERFACE -fsanitize=${sanitizers} -fno-omit-frame-pointer
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(quire_flags INTERFACE -fsanitize=${sanitizers})
endif()

if(QUIRE_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

function(quire_library name)
  cmake_parse_arguments(arg "" "" "DEPS;SOURCES;TESTS;LIBS" ${ARGN})
  add_library(quire_${name} STATIC ${arg_SOURCES})
  list(TRANSFORM arg_DEPS PREPEND quire_)
  target_link_libraries(quire_${name} PUBLIC quire_flags ${arg_DEPS} PRIVATE ${arg_LIBS})
  if(QUIRE_TESTS AND arg_TESTS)
    quire_test(quire_${name}_test DEPS ${name} SOURCES ${arg_TESTS} LIBS ${arg_LIBS})
  endif()
endfunction()

# One test executable; every TEST in it is its own ctest entry.
function(quire_test name)
  cmake_parse_arguments(arg "ALONE" "" "DEPS;SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  list(TRANSFORM arg_DEPS PREPEND quire_)
  target_link_libraries(${name} PRIVATE ${arg_DEPS} ${arg_LIBS} GTest::gtest GTest::gtest_main)
  # What is tested is optimised; the tests themselves need not be, and compile in half the time.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  target_compile_definitions(${name} PRIVATE QUIRE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  # ALONE: it measures time, so no other test runs beside it.
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES RUN_SERIAL ${arg_ALONE})
endfunction()
