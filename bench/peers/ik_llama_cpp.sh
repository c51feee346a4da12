#!/usr/bin/env bash
# ik_llama_cpp.sh - build ik_llama.cpp for this machine, once, and print the folder that holds its programs.
#
# The sources come from the source package of `ik-llama-cpp-python`, which holds the whole tree of ik_llama.cpp under
# vendor/ (the package's wheel knows AVX2 only). See build.sh for the rest.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/build.sh"

version=0.1.5
sha256=33c67eb99e4dcab5e611050433243815709b8b3067753f9ce18375013cf002ad

# Its headers warn in each file that includes them: 95 MB of log without -w. Attention on quantized KV is not measured, and
# leaving it out saves compile time.
build_peer ik-llama-cpp-python "$version" "$sha256" vendor/ik_llama.cpp "ik-llama-cpp-$version" \
  llama-bench llama-batched-bench -- \
  -DLLAMA_BUILD_EXAMPLES=ON -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_CURL=OFF \
  -DGGML_IQK_FA_ALL_QUANTS=OFF -DCMAKE_C_FLAGS=-w -DCMAKE_CXX_FLAGS=-w
