#!/usr/bin/env bash
# llama_cpp.sh - build llama.cpp for this machine, once, and print the folder that holds its programs.
#
# The sources come from the source package of `llama-cpp-python`, which holds the whole tree of llama.cpp under vendor/;
# version and SHA-256 are pinned, so figures of two days compare. See build.sh for the rest.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/build.sh"

version=0.3.36
sha256=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e

build_peer llama-cpp-python "$version" "$sha256" vendor/llama.cpp "llama-cpp-$version" \
  llama-bench llama-batched-bench llama-quantize llama-cli llama-server -- \
  -DLLAMA_BUILD_COMMON=ON -DLLAMA_BUILD_TOOLS=ON -DLLAMA_BUILD_SERVER=ON -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_TESTS=OFF \
  -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF
