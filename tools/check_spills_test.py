#!/usr/bin/env python3
"""Assembles loops with and without spills and checks which of them check_spills.py reports."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).parent / "check_spills.py"


def check(function: str, *options: str) -> tuple[int, str]:
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder, "kernel.s"), Path(folder, "kernel.o")
        source.write_text(f".text\n.globl kernel\n.type kernel, @function\nkernel:\n{function}\nret\n")
        subprocess.run(["as", "-o", output, source], check=True)
        run = subprocess.run([sys.executable, CHECK, *options, output], capture_output=True, text=True)
        return run.returncode, run.stdout


class CheckSpillsTest(unittest.TestCase):
    def test_a_loop_in_registers_passes(self):
        code, output = check("1: vpdpbusd (%rdi), %zmm1, %zmm0\n dec %rcx\n jne 1b", "--strict")
        self.assertEqual((code, output), (0, "1 hot loops, 0 with spills\n"))

    def test_a_reload_in_the_loop_is_found(self):
        code, output = check("1: vmovdqa64 64(%rsp), %zmm1\n vpdpbusd (%rdi), %zmm1, %zmm0\n jne 1b", "--strict")
        self.assertEqual(code, 1)
        self.assertIn("kernel: loop", output)
        self.assertIn("vmovdqa64 0x40(%rsp),%zmm1", output)

    def test_half_width_registers_count_too(self):
        loop = "1: vpmaddubsw %ymm2, %ymm1, %ymm0\n vmovdqa %ymm0, 64(%rsp)\n jne 1b"
        self.assertEqual(check(loop, "--strict")[0], 1)

    def test_without_strict_it_only_reports(self):
        code, output = check("1: vmovdqa64 64(%rsp), %zmm1\n vdpbf16ps (%rdi), %zmm1, %zmm0\n jne 1b")
        self.assertEqual(code, 0)
        self.assertIn("1 hot loops, 1 with spills", output)

    def test_a_spill_around_the_innermost_loop_is_allowed(self):
        code, output = check(
            "2: vmovdqa64 %zmm0, 64(%rsp)\n1: vpdpbusd (%rdi), %zmm1, %zmm0\n jne 1b\n dec %rdx\n jne 2b", "--strict")
        self.assertEqual((code, output), (0, "1 hot loops, 0 with spills\n"))

    def test_a_broadcast_from_the_stack_is_data(self):
        self.assertEqual(check("1: vpdpbusd 64(%rsp){1to16}, %zmm1, %zmm0\n jne 1b", "--strict")[0], 0)
        load = "1: vpbroadcastd 64(%rsp), %ymm2\n vpmaddubsw %ymm2, %ymm1, %ymm0\n jne 1b"
        self.assertEqual(check(load, "--strict"), (0, "1 hot loops, 0 with spills\n"))

    def test_rbp_counts_only_as_frame_pointer(self):
        loop = "1: vmovdqa64 64(%rbp), %zmm1\n vpdpbusd (%rdi), %zmm1, %zmm0\n jne 1b"
        self.assertEqual(check(loop, "--strict")[0], 0)
        self.assertEqual(check("mov %rsp, %rbp\n" + loop, "--strict")[0], 1)

    def test_other_loops_are_not_its_business(self):
        self.assertEqual(check("1: vmovdqa64 64(%rsp), %zmm1\n jne 1b", "--strict"), (0, "0 hot loops, 0 with spills\n"))


if __name__ == "__main__":
    unittest.main()
