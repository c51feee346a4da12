#!/usr/bin/env bash
# models.sh - make the files of one quantized type that the comparison wants, once, and print the folder that holds them.
#
# "Pure" files hold every matrix in one type, which OpenVINO wants, and which says what that type's kernels do. They are
# made with llama.cpp's llama-quantize from the files in ${QUIRE_MODELS:-${QUIRE_CACHE:-~/.cache/quire}/models}, whose
# weights are quantized already: good for speed, not for the quality of answers. A source that is missing is said.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/build.sh"

models=${QUIRE_MODELS:-${peers%/peers}/models}
sources=(smollm2-135m-instruct-q4_1 qwen2.5-coder-0.5b-instruct-q4_k_m qwen2.5-coder-1.5b-instruct-q4_k_m)
types=(q4_0 q8_0)
folder=$peers/models

bin=
for source in "${sources[@]}"; do
  for type in "${types[@]}"; do
    name=${source%-q4_*}-$type.gguf
    [ ! -f "$folder/$name" ] || continue
    if [ ! -f "$models/$source.gguf" ]; then
      say "no $models/$source.gguf, so no $name; './dev test --full' fetches it"
      continue
    fi
    [ -n "$bin" ] || bin=$("$(dirname "${BASH_SOURCE[0]}")/llama_cpp.sh")
    lock "$folder"
    say "making $name"
    "$bin/llama-quantize" --allow-requantize --pure "$models/$source.gguf" "$folder/$name.part" "${type^^}" \
      "${JOBS:-$(nproc)}" >"$folder/quantize.log" 2>&1 || die "llama-quantize failed; see $folder/quantize.log"
    mv "$folder/$name.part" "$folder/$name"
  done
done
mkdir -p "$folder"
echo "$folder"
