#!/usr/bin/env python3
"""Writes tests/golden/gptq/goldens.safetensors: GPTQ of one small matrix, column by column in float64, with numpy.

usage: make_gptq_goldens.py [OUT]

Written from the paper (Frantar et al. 2022, arXiv 2210.17323, Algorithm 1) without its blocks, which change nothing but the order of
sums: the inverse of the damped second moments is computed as such, and each column's error is taken from all columns behind it at
once. Columns of large inputs come first: with act-order wherever they are, without it groups by their largest and then the columns
within each, so that groups stay those of neighbours. The damping is a share of the mean of the diagonal as it was before columns
without input got a 1. Scales of a group are chosen when its first column is reached, from the values that its columns have then: of
the range of the values and 0 (symmetric: of the largest magnitude on both sides), and of that range shrunk by 2 %, 4 %, ... 40 %, the
one whose rounding errors, weighted by 1 / U_ii^2, have the least sum. Scales of static groups are chosen so before the first column
is quantized, from the weights. Scales are f16.

The file holds `weights` [n][k], `moments` [k][k], `dead` (the columns without input of cases that have such), and for each case
codes, scales, zeros, group_of, order (the column at each place), `error` (the trace of d H d^T, d being what rounding changed) and
`sure` [n]: how many columns of a row, in the order in which they are quantized, follow without a tie. Behind a place where another order of sums may round another way (a code
within 1e-3 of a tie, a scale within 1e-4 of one between two f16 values, two ranges whose errors agree to 1e-4), a row may be another.
"""

import json
import struct
import sys
from pathlib import Path

import numpy as np

N, K = 24, 192
DEAD = [5, 77, 128, 191]
TIE, SCALE_TIE, ERROR_TIE = 1e-3, 1e-4, 1e-4
CASES = {  # bits, group, symmetric, act_order, static_groups, dead
    "g32-sym": (4, 32, True, False, False, False),
    "g32-asym": (4, 32, False, False, False, False),
    "g64-sym": (4, 64, True, False, False, False),
    "g64-asym-dead": (4, 64, False, False, False, True),
    "row-sym": (4, K, True, False, False, False),
    "row-asym-8bit": (8, K, False, False, False, False),
    "g32-asym-act-order": (4, 32, False, True, False, False),
    "g64-sym-act-order-dead": (4, 64, True, True, False, True),
    "g32-sym-static": (4, 32, True, False, True, False),
    "g64-asym-act-order-static": (4, 64, False, True, True, False),
}
DTYPES = {"float32": "F32", "float64": "F64", "uint8": "U8", "int32": "I32"}


def inputs(random):
    """Correlated inputs, a few channels of which are large."""
    mixed = random.standard_normal((320, 40)) @ random.standard_normal((40, K)) / 8 + random.standard_normal((320, K)) / 2
    mixed *= np.exp(random.standard_normal(K) / 2)
    return (mixed.T @ mixed / len(mixed)).astype(np.float32)


class Group:
    """Scale and zero point of one group of a row, and whether another order of sums could choose others."""

    def __init__(self, values, costs, bits, symmetric):
        self.levels = 2**bits - 1
        tried = [self.of_range(values, share, bits, symmetric) for share in 1 - 0.02 * np.arange(21)]
        errors = [(costs * (self.stored(values, *grid[:2]) - values) ** 2).sum() for grid in tried]
        best = int(np.argmin(errors))
        self.scale, self.zero, self.sure = tried[best]
        for grid, error in zip(tried, errors):
            if grid[:2] != tried[best][:2] and error < errors[best] * (1 + ERROR_TIE):
                self.sure = False

    def of_range(self, values, share, bits, symmetric):
        low, high = min(values.min(), 0) * share, max(values.max(), 0) * share
        if low == high == 0:
            low, high = -1, 1
        if symmetric:
            high = max(-low, high)
            low = -high
        exact = (high - low) / self.levels
        scale = np.float64(np.float16(exact))
        above, below = (np.float64(np.nextafter(np.float16(scale), np.float16(end))) for end in (np.inf, 0))
        sure = min(abs((scale + above) / 2 - exact), abs((scale + below) / 2 - exact)) > SCALE_TIE * (above - scale)
        if symmetric:
            return scale, 2 ** (bits - 1), sure
        sure = sure and abs(-low / scale % 1 - 0.5) > TIE
        return scale, int(np.clip(np.floor(-low / scale + 0.5), 0, self.levels)), sure

    def codes(self, values, scale, zero):
        return np.clip(np.floor(values / scale + zero + 0.5), 0, self.levels)

    def stored(self, values, scale, zero):
        return (self.codes(values, scale, zero) - zero) * scale


def quantize_row(weights, upper, order, grid):
    bits, group, symmetric, act_order, static, _ = grid
    costs = 1 / np.diag(upper) ** 2
    place_groups = [i // group if act_order and not static else int(order[i]) // group for i in range(K)]
    column_costs = costs[np.argsort(order)]
    groups = [Group(weights[first:first + group], column_costs[first:first + group], bits, symmetric) if static else None
              for first in range(0, K, group)]
    w = weights[order].copy()
    codes, unsure = np.zeros(K), K
    for i in range(K):
        if not static and i % group == 0:
            groups[place_groups[i]] = Group(w[i:i + group], costs[i:i + group], bits, symmetric)
        here = groups[place_groups[i]]
        codes[i] = here.codes(w[i], here.scale, here.zero)
        place = w[i] / here.scale + here.zero
        if unsure == K and (not here.sure or (abs(place % 1 - 0.5) < TIE and -1 < place < here.levels + 1)):
            unsure = i
        error = (w[i] - (codes[i] - here.zero) * here.scale) / upper[i, i]
        w[i:] -= error * upper[i, i:]
    back = np.argsort(order)
    return codes[back], [g.scale for g in groups], [g.zero for g in groups], np.array(place_groups)[back], unsure


def case(weights, moments, grid):
    bits, group, _, act_order, _, dead = grid
    weights, moments = weights.astype(np.float64), moments.astype(np.float64)
    stored_weights = weights.copy()
    if dead:
        moments[DEAD], moments[:, DEAD] = 0, 0
    mean = np.diag(moments).mean()
    damped = moments.copy()
    if dead:
        damped[DEAD, DEAD] = 1
        weights[:, DEAD] = 0
    order = np.argsort(-np.diag(damped), kind="stable")
    if not act_order:
        peaks = np.diag(damped).reshape(-1, group).max(axis=1)
        order = np.concatenate([order[order // group == g] for g in np.argsort(-peaks, kind="stable")])
    damped = damped[np.ix_(order, order)] + 0.01 * mean * np.eye(K)
    upper = np.linalg.cholesky(np.linalg.inv(damped)).T
    rows = [quantize_row(row, upper, order, grid) for row in weights]
    codes, scales, zeros = (np.array([row[part] for row in rows]) for part in range(3))
    group_of = rows[0][3]
    difference = scales[:, group_of] * (codes - zeros[:, group_of]) - stored_weights
    error = np.einsum("ni,ij,nj", difference, moments, difference)
    return {"codes": codes.astype(np.uint8), "scales": scales.astype(np.float32), "zeros": zeros.astype(np.uint8),
            "group_of": group_of.astype(np.int32), "order": order.astype(np.int32), "error": np.array([error]),
            "sure": np.array([row[4] for row in rows], np.int32)}


def save(path, tensors):
    header, data = {}, b""
    for name, values in tensors.items():
        raw = values.tobytes()
        header[name] = {"dtype": DTYPES[values.dtype.name], "shape": list(values.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def main(path):
    random = np.random.default_rng(20260101)
    moments = inputs(random)
    weights = (random.standard_normal((N, K)) * np.exp(random.standard_normal((N, 1)) / 3) / 16).astype(np.float32)
    weights[3, 64:128] = 0  # a group of zeros
    tensors = {"weights": weights, "moments": moments, "dead": np.array(DEAD, np.int32)}
    for name, grid in CASES.items():
        result = case(weights, moments, grid)
        tensors |= {f"{name}.{part}": values for part, values in result.items()}
        print(f"{name:28} error {result['error'][0]:.6f}, {result['sure'].sum()} of {N * K} codes are sure")
    save(path, tensors)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent / "tests/golden/gptq/goldens.safetensors")
