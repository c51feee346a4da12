#!/usr/bin/env python3
"""Measures OpenVINO GenAI's ContinuousBatchingPipeline on a GGUF file; runs in the environment of openvino.sh.

    openvino_bench.py MODEL [--threads N] [--tokens N] FIGURE...

The figures are those of measure.py: prefill:N, decode:N (one answer after N tokens, at least 16), batch:N (N answers
after 128 tokens each). Prints one JSON object, FIGURE to tokens a second. Each shape runs once before it is measured,
because the pipeline compiles its kernels on first use. Steps are timed, so prefill does not count into decode.
"""

import argparse
import itertools
import json
import random
import time

import numpy
import openvino
import openvino_genai as genai

BATCH_PROMPT = 128
REQUEST_IDS = itertools.count()
RANDOM = random.Random()


def load(model: str, threads: int):
    scheduler = genai.SchedulerConfig()
    scheduler.cache_size = 3  # GB
    scheduler.max_num_seqs = 64
    scheduler.max_num_batched_tokens = 2048
    scheduler.dynamic_split_fuse = True
    scheduler.enable_prefix_caching = False
    return genai.ContinuousBatchingPipeline(model, scheduler, "CPU", {"INFERENCE_NUM_THREADS": threads})


def run(pipeline, sequences: int, prompt: int, tokens: int) -> list[tuple[float, list[int]]]:
    """The time after each step, from the start, and how many tokens each sequence had by then."""
    config = genai.GenerationConfig()
    config.max_new_tokens = config.min_new_tokens = tokens
    config.ignore_eos = True
    config.do_sample = False
    # Ids below 30,000 exist in each vocabulary.
    prompts = [numpy.array([[RANDOM.randrange(1000, 30000) for _ in range(prompt)]], dtype=numpy.int64)
               for _ in range(sequences)]
    began = time.perf_counter()
    handles = [pipeline.add_request(next(REQUEST_IDS), openvino.Tensor(ids), config) for ids in prompts]
    counts, steps = [0] * sequences, []
    while pipeline.has_non_finished_requests():
        pipeline.step()
        now = time.perf_counter() - began
        for i, handle in enumerate(handles):
            while handle.can_read():
                counts[i] += sum(len(output.generated_ids) for output in handle.read().values())
        steps.append((now, counts.copy()))
    if counts != [tokens] * sequences:
        raise SystemExit(f"wanted {tokens} tokens of each of {sequences} answers, got {counts}")
    return steps


def decode_speed(steps: list[tuple[float, list[int]]], tokens: int) -> float:
    """Tokens a second from the step that gave the last sequence its first token to the one that ended the first."""
    first = next(step for step in steps if min(step[1]) >= 1)
    last = next(step for step in steps if max(step[1]) >= tokens)
    return (sum(last[1]) - sum(first[1])) / (last[0] - first[0])


def measure(pipeline, figure: str, tokens: int) -> float:
    kind, number = figure.split(":")
    size = int(number)
    if kind == "prefill":
        run(pipeline, 1, size, 1)
        return size / run(pipeline, 1, size, 1)[-1][0]
    sequences, prompt = (size, BATCH_PROMPT) if kind == "batch" else (1, max(16, size))
    run(pipeline, sequences, min(prompt, BATCH_PROMPT), 8)
    return decode_speed(run(pipeline, sequences, prompt, tokens + 1), tokens + 1)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure OpenVINO GenAI on a GGUF file.")
    parser.add_argument("model")
    parser.add_argument("figures", nargs="+", metavar="FIGURE")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=64, help="generated tokens that decode and batch count")
    options = parser.parse_args()
    pipeline = load(options.model, options.threads)
    print(json.dumps({figure: measure(pipeline, figure, options.tokens) for figure in options.figures}))


if __name__ == "__main__":
    main()
