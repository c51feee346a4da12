#!/usr/bin/env bash
# ik_llama_cpp.sh - build ik_llama.cpp for this machine, once, and print the folder that holds its programs.
#
# The sources come from the source package of `ik-llama-cpp-python`, which holds the whole tree of ik_llama.cpp under
# vendor/ (the package's wheel knows AVX2 only). See build.sh for the rest.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/build.sh"

version=0.1.5
sha256=33c67eb99e4dcab5e611050433243815709b8b3067753f9ce18375013cf002ad

# The package leaves a script out that its build calls for the version it prints.
prepare_tree() {
  mkdir -p "$1/common/cmake"
  cat >"$1/common/cmake/build-info-gen-cpp.cmake" <<CMAKE
set(BUILD_NUMBER 0)
set(BUILD_COMMIT "ik-llama-cpp-python $version")
set(BUILD_COMPILER "\${CMAKE_C_COMPILER_ID} \${CMAKE_C_COMPILER_VERSION}")
set(BUILD_TARGET "native")
configure_file(\${CMAKE_CURRENT_LIST_DIR}/../build-info.cpp.in \${CMAKE_CURRENT_LIST_DIR}/../build-info.cpp @ONLY)
CMAKE
}

# Its headers warn in each file that includes them: 95 MB of log without -w. Attention on quantized KV is not measured, and
# leaving it out saves compile time.
build_peer ik-llama-cpp-python "$version" "$sha256" vendor/ik_llama.cpp "ik-llama-cpp-$version" \
  llama-bench llama-batched-bench -- \
  -DLLAMA_BUILD_EXAMPLES=ON -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_CURL=OFF \
  -DGGML_IQK_FA_ALL_QUANTS=OFF -DCMAKE_C_FLAGS=-w -DCMAKE_CXX_FLAGS=-w
