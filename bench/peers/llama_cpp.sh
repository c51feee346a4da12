#!/usr/bin/env bash
# llama_cpp.sh - build llama.cpp for this machine, once, and print the folder that holds its programs.
#
# The sources come from the source package of `llama-cpp-python` on the Python package index, which holds the whole
# tree of llama.cpp under vendor/; version and SHA-256 are pinned, so figures of two days compare. Programs built:
# llama-bench, llama-quantize, llama-cli. Everything lies in ${QUIRE_CACHE:-~/.cache/quire}/peers; a second call
# returns at once. JOBS limits the compile jobs (default: all cores).
set -euo pipefail

version=0.3.36
sha256=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
programs=(llama-bench llama-quantize llama-cli)

cache=${QUIRE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/quire}/peers
root=$cache/llama-cpp-$version
source=$root/source/llama_cpp_python-$version/vendor/llama.cpp
build=$root/build
bin=$build/bin
stamp=$root/built

say() { echo "llama_cpp.sh: $*" >&2; }
die() { say "$*"; exit 1; }

if [ -f "$stamp" ]; then
  echo "$bin"
  exit 0
fi

for tool in cmake ninja g++ python3; do
  command -v "$tool" >/dev/null || die "$tool is missing; './dev setup' installs what the build needs"
done
mkdir -p "$root"
exec 9>"$root/lock"
flock 9

if [ ! -f "$source/CMakeLists.txt" ]; then
  say "fetching llama-cpp-python $version (77 MB)"
  rm -rf "$root/download" "$root/source"
  # pip asks a source package for its metadata before it keeps it; that installs the package's build tool into a
  # throw-away environment and compiles nothing.
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --no-binary llama-cpp-python \
    --dest "$root/download" "llama-cpp-python==$version" >&2
  archive=$(find "$root/download" -name '*.tar.gz')
  [ -f "$archive" ] || die "the index delivered no source archive of llama-cpp-python $version"
  echo "$sha256  $archive" | sha256sum --check --status || die "$archive: SHA-256 differs from the pinned $sha256"
  mkdir -p "$root/source"
  tar xzf "$archive" -C "$root/source" "llama_cpp_python-$version/vendor/llama.cpp"
  rm -rf "$root/download"
fi

say "building ${programs[*]} into $build (about 10 minutes on two cores)"
cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DGGML_NATIVE=ON \
  -DLLAMA_BUILD_COMMON=ON -DLLAMA_BUILD_TOOLS=ON -DLLAMA_BUILD_SERVER=ON -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_TESTS=OFF \
  -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF >"$root/configure.log" 2>&1 ||
  die "configuring failed; see $root/configure.log"
cmake --build "$build" --parallel "${JOBS:-$(nproc)}" --target "${programs[@]}" >"$root/build.log" 2>&1 ||
  die "building failed; see $root/build.log"
for program in "${programs[@]}"; do
  [ -x "$bin/$program" ] || die "the build left no $program in $bin"
done
touch "$stamp"
echo "$bin"
