#!/usr/bin/env python3
"""Reports hot loops of the vector kernels that spill vector registers to the stack.

A kernel keeps its accumulators in registers; one more live value than there are registers, and the compiler stores and
reloads a vector in the innermost loop, which costs more than the arithmetic. No test of results sees that. The check
disassembles the objects, finds each innermost loop with an int8, int16 or bf16 dot product (vpdpbusd, vpdpwssd, vpmaddubsw, vdpbf16ps),
and names the instructions in it that move a zmm or ymm register to or from the stack frame. A broadcast from the stack
is data, not a spill.

usage: check_spills.py [--strict] OBJECT...      with --strict, exit 1 when a loop spills
"""

import argparse
import re
import subprocess
import sys
from dataclasses import dataclass

FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\t(\S.*)$")
JUMP = re.compile(r"^j\w+\s+([0-9a-f]+)\b")
DOT_PRODUCT = re.compile(r"\b(vpdpbusds?|vpdpwssd|vdpbf16ps|vpmaddubsw)\b.*%[yz]mm")
VECTOR = re.compile(r"%[yz]mm")
BROADCAST = re.compile(r"\{1to|^vp?broadcast")
STACK_OPERAND = re.compile(r"\((%rsp|%rbp)[,)]")


@dataclass
class Loop:
    function: str
    first: int  # address of the first and of the last instruction
    last: int
    spills: list[str]


def functions(disassembly: str):
    """Yields (name, [(address, text)]) of each function."""
    name, body = "", []
    for line in disassembly.splitlines():
        if match := FUNCTION.match(line):
            if body:
                yield name, body
            name, body = match[1], []
        elif match := INSTRUCTION.match(line):
            body.append((int(match[1], 16), match[2].strip()))
    if body:
        yield name, body


def innermost_loops(body: list[tuple[int, str]]) -> list[tuple[int, int]]:
    """Address ranges closed by a backward jump that hold no smaller such range."""
    start = body[0][0]
    loops = set()
    for address, text in body:
        if (match := JUMP.match(text)) and start <= int(match[1], 16) <= address:
            loops.add((int(match[1], 16), address))
    return sorted(a for a in loops if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in loops))


def hot_loops(disassembly: str) -> list[Loop]:
    found = []
    for name, body in functions(disassembly):
        # %rbp addresses the frame only where the function set it up as the frame pointer.
        frame = {"%rsp"} | ({"%rbp"} if any(re.match(r"mov\s+%rsp,%rbp$", text) for _, text in body) else set())
        for first, last in innermost_loops(body):
            texts = [(address, text) for address, text in body if first <= address <= last]
            if not any(DOT_PRODUCT.search(text) for _, text in texts):
                continue
            spills = [
                f"{address:x}: {text}"
                for address, text in texts
                if VECTOR.search(text) and not BROADCAST.search(text) and (operand := STACK_OPERAND.search(text))
                and operand[1] in frame
            ]
            found.append(Loop(name, first, last, spills))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Report hot loops with vector registers spilled to the stack.")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a loop spills")
    parser.add_argument("objects", nargs="+")
    arguments = parser.parse_args()
    loops = spilling = 0
    for path in arguments.objects:
        listing = subprocess.run(
            ["objdump", "--disassemble", "--demangle", "--no-show-raw-insn", path], capture_output=True, text=True)
        if listing.returncode != 0:
            print(f"{path}: objdump failed: {listing.stderr.strip()}")
            return 2
        for loop in hot_loops(listing.stdout):
            loops += 1
            if loop.spills:
                spilling += 1
                print(f"{path}: {loop.function}: loop {loop.first:x}..{loop.last:x} spills {len(loop.spills)} times")
                for spill in loop.spills:
                    print(f"    {spill}")
    print(f"{loops} hot loops, {spilling} with spills")
    return 1 if arguments.strict and spilling else 0


if __name__ == "__main__":
    sys.exit(main())
