#!/usr/bin/env bash
# openvino.sh - install OpenVINO GenAI into an environment of its own, once, and print the path of its Python.
#
# The wheels' versions are pinned, their dependencies' too. It lies in ${QUIRE_CACHE:-~/.cache/quire}/peers (300 MB).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/build.sh"

pins=(
  openvino-genai==2026.4.1.0 openvino-tokenizers==2026.4.1.0 openvino==2026.4.1 openvino-telemetry==2025.2.0 numpy==2.4.6
)
root=$peers/openvino-2026.4.1

if [ "$(cat "$root/installed" 2>/dev/null)" != "${pins[*]}" ]; then
  need python3
  lock "$root"
  say "installing ${pins[0]} into $root"
  rm -rf "$root/venv"
  python3 -m venv "$root/venv" || die "'./dev setup' installs python3-venv"
  "$root/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary :all: "${pins[@]}" >&2
  echo "${pins[*]}" >"$root/installed"
fi
echo "$root/venv/bin/python"
