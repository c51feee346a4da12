#!/usr/bin/env python3
"""Chats on a terminal: Ctrl-C stops an answer, not the program; twice at the prompt, or Ctrl-D, leaves."""

import os
import pty
import re
import select
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from quire_runner import LIMIT_S, QUIRE, TINY, environment, equal, main

MODEL = TINY / "llama-mqa-sharded"
CTRL_C, CTRL_D = "\x03", "\x04"


class Chat:
    """quire run on a pseudo-terminal."""

    def __init__(self, *arguments):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execve(QUIRE, [QUIRE, "run", "-m", str(MODEL), *map(str, arguments)], environment(TERM="dumb"))
        self.seen = ""

    def type(self, text):
        os.write(self.terminal, text.encode())

    def expect(self, pattern):
        """Reads until `pattern` has come, and returns what came up to its end."""
        end = time.monotonic() + LIMIT_S
        while not (match := re.search(pattern, self.seen)):
            assert time.monotonic() < end, f"no {pattern!r} in {self.seen!r}"
            if select.select([self.terminal], [], [], 1)[0]:
                try:
                    self.seen += os.read(self.terminal, 65536).decode(errors="replace")
                except OSError:  # the program has gone
                    assert re.search(pattern, self.seen), f"ended without {pattern!r}: {self.seen!r}"
        before, self.seen = self.seen[:match.end()], self.seen[match.end():]
        return before

    def exit_code(self):
        while True:
            try:
                if not os.read(self.terminal, 65536):
                    break
            except OSError:
                break
        _, status = os.waitpid(self.pid, 0)
        os.close(self.terminal)
        return os.waitstatus_to_exitcode(status)


def test_chat_with_history_and_end_of_input():
    chat = Chat("--max-tokens", 4, "--ignore-eos", "--temperature", 0)
    chat.expect("Ctrl-D leaves")
    chat.expect("> ")
    chat.type("Hello\n")
    chat.expect(r"answer\s+4\s+tokens")
    chat.expect("> ")
    chat.type("And then?\n")
    chat.expect(r"\(\d+ cached\)")
    chat.expect("> ")
    chat.type("/clear\n")
    chat.expect("> ")
    chat.type(CTRL_D)
    equal(chat.exit_code(), 0)


def test_interrupt_stops_the_answer_not_the_program():
    chat = Chat("--ignore-eos", "--isa", "scalar", "--compute", "f32")
    chat.expect("> ")
    chat.type("Go on for long\n")
    chat.expect("long\r\n.")
    chat.type(CTRL_C)
    count = int(re.search(r"answer\s+([\d,]+)\s+token", chat.expect(r"answer\s+[\d,]+\s+token")).group(1).replace(",", ""))
    assert count < 350, "the answer ran to the end of the context"
    chat.expect("> ")
    chat.type("Once more\n")
    chat.expect("more\r\n.")
    chat.type(CTRL_C)
    chat.expect(r"answer\s+[0-9]")
    chat.expect("> ")
    chat.type(CTRL_C)
    chat.expect("Ctrl-C again")
    chat.expect("> ")
    chat.type(CTRL_C)
    equal(chat.exit_code(), 130)


def test_a_line_between_forgives_the_first_interrupt():
    chat = Chat("--max-tokens", 1, "--ignore-eos")
    chat.expect("> ")
    chat.type(CTRL_C)
    chat.expect("Ctrl-C again")
    chat.expect("> ")
    chat.type("Hi\n")
    chat.expect(r"answer\s+1\s+token")
    chat.expect("> ")
    chat.type(CTRL_C)
    chat.expect("Ctrl-C again")
    chat.expect("> ")
    chat.type(CTRL_D)
    equal(chat.exit_code(), 0)


def test_a_prompt_too_long_does_not_end_the_chat():
    chat = Chat("--context", 200, "--max-tokens", 2, "--ignore-eos")
    chat.expect("> ")
    chat.type("x" * 300 + "\n")
    chat.expect("the context is 200")
    chat.expect("> ")
    chat.type("Hi\n")
    chat.expect(r"answer\s+2\s+tokens")
    chat.expect("> ")
    chat.type(CTRL_D)
    equal(chat.exit_code(), 0)


def test_interrupt_of_one_prompt_is_exit_130():
    program = subprocess.Popen([QUIRE, "run", "-m", MODEL, "--ignore-eos", "--isa", "scalar", "--compute", "f32", "Hello"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment())
    assert program.stdout.read(1)
    program.send_signal(signal.SIGINT)
    program.stdout.read()
    equal(program.wait(LIMIT_S), 130)
    program.stdout.close()


def test_interrupt_of_a_download_leaves_nothing():
    with tempfile.TemporaryDirectory(prefix="quire-e2e-") as folder:
        started, cache = Path(folder) / "started", Path(folder) / "cache"
        fake = Path(folder) / "python3"
        fake.write_text(f"#!/bin/sh\necho $$ > {started}.new; mv {started}.new {started}; exec sleep 600\n")
        fake.chmod(0o755)
        env = environment(PATH=f"{folder}:{os.environ['PATH']}", QUIRE_CACHE=cache)
        program = subprocess.Popen([QUIRE, "pull", "smollm2-135m-instruct"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env=env)
        end = time.monotonic() + LIMIT_S
        while not started.exists():
            assert time.monotonic() < end and program.poll() is None
            time.sleep(0.01)
        program.send_signal(signal.SIGINT)
        equal(program.wait(LIMIT_S), 130)
        equal(list((cache / "models").iterdir()), [], "left behind")
        child = int(started.read_text())
        assert not Path(f"/proc/{child}").exists(), "the download goes on"


if __name__ == "__main__":
    main([test for name, test in list(globals().items()) if name.startswith("test_")])
