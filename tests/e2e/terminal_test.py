#!/usr/bin/env python3
"""`quire run` at a terminal: keys typed into a pseudo-terminal, and the screen that a terminal makes of the answer.

The screen is pyte's. Every step waits for the screen it should lead to, for as long as LIMIT_S; nothing sleeps.
"""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import tempfile
import termios
import time
import unicodedata
from pathlib import Path

import pyte

from quire_runner import LIMIT_S, QUIRE, environment, equal, jsonl, main, quire
from server_runner import Server, default_model

ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[=>])")
UP, DOWN, RIGHT, LEFT = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D"
HOME, END, DELETE, BACKSPACE = "\x1b[H", "\x1b[F", "\x1b[3~", "\x7f"
CTRL_A, CTRL_C, CTRL_D, CTRL_E, CTRL_R, CTRL_U, CTRL_W = "\x01\x03\x04\x05\x12\x15\x17"
ALT_ENTER = "\x1b\r"
SHORT = ["--temperature", 0, "--max-tokens", 8]


def pasted(text):
    return f"\x1b[200~{text}\x1b[201~"


class Terminal:
    """quire on a pseudo-terminal of its own, with a home of its own unless one is given."""

    def __init__(self, *arguments, columns=80, rows=24, home=None, **variables):
        self.own_home = None if home else tempfile.TemporaryDirectory(prefix="quire-e2e-")
        self.home = Path(home or self.own_home.name)
        # A locale that knows no UTF-8: what is typed and shown must not depend on it.
        env = environment(**{"TERM": "xterm-256color", "LANG": "C", "LC_ALL": "C", "HOME": self.home,
                             "QUIRE_CACHE": self.home / "cache", "QUIRE_MODEL": default_model()} | variables)
        env.pop("XDG_STATE_HOME", None)
        env.pop("NO_COLOR", None) if "NO_COLOR" not in variables else None
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.text = ""  # what has come since the last keys, without escapes
        self.raw = b""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.chdir(self.home)
            os.execve(QUIRE, [QUIRE, *map(str, arguments)], env)
        self.found = termios.tcgetattr(self.terminal)

    def type(self, text):
        self.text = ""
        data = text.encode()
        while data:
            data = data[os.write(self.terminal, data[:512]):]
            self.pump(0)

    def resize(self, columns, rows=24):
        self.text = ""
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def pump(self, wait_s):
        """Shows what has come; False: the program has gone."""
        if not select.select([self.terminal], [], [], wait_s)[0]:
            return True
        try:
            data = os.read(self.terminal, 65536)
        except OSError:
            return False
        self.raw += data
        self.stream.feed(data)
        self.text += ESCAPE.sub("", data.decode(errors="replace"))
        return bool(data)

    def rows(self):
        return [row.rstrip() for row in self.screen.display]

    def expect(self, condition, what):
        """Waits until the screen is as `condition` wants it."""
        end = time.monotonic() + LIMIT_S
        while not condition():
            if not self.pump(0.2):
                assert condition(), f"ended without {what}\n{self}"
                return
            assert time.monotonic() < end, f"no {what}\n{self}"

    def said(self, pattern):
        """Waits until the program has printed this since the last keys."""
        self.expect(lambda: re.search(pattern, self.text), f"output {pattern!r}")
        return re.search(pattern, self.text)

    def line(self, text, cursor=None, lead="> "):
        """Waits until the line being typed is `text`, over as many rows as it has, and the cursor in the last but at `cursor`."""
        wanted = (lead + text).split("\n")

        def shown():
            rows, y = self.rows(), self.screen.cursor.y
            place = self.screen.cursor.x == (cursor if cursor is not None else cells(wanted[-1]))
            if len(wanted) > 1 and cursor is None:
                return rows[y - len(wanted) + 1:y + 1] == [row.rstrip() for row in wanted] and place
            return any(rows[top:top + len(wanted)] == [row.rstrip() for row in wanted]
                       for top in range(max(0, y - len(wanted) + 1), y + 1)) and place
        self.expect(shown, f"line {text!r}, cursor {cursor}")

    def prompt(self):
        """Waits for an empty prompt."""
        self.line("")

    def answer(self):
        """Waits for the end of an answer and the prompt behind it; returns how many tokens it has."""
        count = self.said(r"answer\s+([\d,]+)\s+token")[1]
        self.said(r"> $")
        self.prompt()
        return int(count.replace(",", ""))

    def command(self, text, says):
        """Types a command, and waits for what it says and the next prompt."""
        self.type(text + "\r")
        self.said(says)
        self.said(r"> $")
        self.prompt()

    def exit_code(self):
        end = time.monotonic() + LIMIT_S
        while self.pump(0.2):
            assert time.monotonic() < end, f"does not end\n{self}"
        _, status = os.waitpid(self.pid, 0)
        os.close(self.terminal)
        return os.waitstatus_to_exitcode(status)

    def restored(self):
        """That the terminal is as it was found: checked after the program has said so, before it is closed."""
        self.expect(lambda: self.raw.rstrip().endswith(b"\x1b[?2004l") or b"\x1b[?2004l" in self.raw[-40:], "end of pastes")
        self.expect(lambda: termios.tcgetattr(self.terminal) == self.found, "the settings that it was found with")

    def __str__(self):
        cursor = self.screen.cursor
        return "\n".join(f"  |{row}" for row in self.rows()) + f"\n  cursor: row {cursor.y}, column {cursor.x}; last: {self.text[-300:]!r}"


def cells(text):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def wrapped(text, columns):
    """The rows that plain prose has: words, with what is left of a line's spaces gone."""
    rows = []
    for line in text.rstrip("\n").split("\n"):
        row = ""
        for space, word in re.findall(r"(\s*)(\S+)", line):
            if row and cells(row + space + word) > columns:
                rows.append(row)
                row = word
            else:
                row += space + word
        rows.append(row)
    return rows


def shown_answer(terminal, text, columns):
    """That the rows above the report are the answer, wrapped."""
    expected = wrapped(text, columns)
    rows = terminal.rows()
    end = max(i for i, row in enumerate(rows) if row.startswith("prompt "))
    equal(rows[end - len(expected):end], expected, f"the answer as shown\n{terminal}")


def api_answer(messages, **options):
    (answer,) = jsonl("run", [{"messages": messages, "temperature": 0, "max_tokens": 8} | options], "-m", default_model())
    return answer


def user(text):
    return {"role": "user", "content": text}


def start(*arguments, **options):
    terminal = Terminal("run", *arguments, **options)
    terminal.said("/help lists the commands")
    terminal.prompt()
    return terminal


def leave(terminal):
    terminal.type(CTRL_D)
    terminal.restored()
    equal(terminal.exit_code(), 0)


# --- keys -----------------------------------------------------------------------------------------------------

def test_lines_are_edited():
    t = start(*SHORT)
    t.type("helo wrld")                         # 1
    t.line("helo wrld")
    colours = [t.screen.buffer[t.screen.cursor.y][x].fg for x in (0, 2)]
    assert colours[0] != "default" and colours[1] == "default", f"the prompt alone is coloured: {colours}"
    t.type(LEFT * 3 + "o")                      # 2
    t.line("helo world", 9)
    t.type(HOME + RIGHT * 3 + "l")              # 3
    t.line("hello world", 6)
    t.type(END + "!")                           # 4
    t.line("hello world!")
    t.type(CTRL_A + DELETE + "H")               # 5
    t.line("Hello world!", 3)
    t.type(CTRL_E + BACKSPACE)                  # 6
    t.line("Hello world")
    t.type(CTRL_W)                              # 7
    t.line("Hello ")
    t.type(CTRL_U)                              # 8
    t.line("")
    t.type("a\tb" + CTRL_U + "\x1b[15~" + CTRL_U)  # 9: keys without a meaning leave the line alone
    t.line("")
    long = "word " * 20 + "end"
    t.type(long)                                # 10: over the edge of the window
    t.line(long[:78] + "\n" + long[78:], cells(long[78:]), lead="> ")
    t.type(HOME + "X")                          # 11
    t.line("X" + long[:77] + "\n" + long[77:], 3)
    t.type(CTRL_E + CTRL_U)
    t.line("")
    leave(t)


def test_wide_characters_and_emoji():
    t = start(*SHORT)
    t.type("häß")                               # 12
    t.line("häß", 5)
    t.type(" 你好")                              # 13: two cells each
    t.expect(lambda: t.screen.cursor.x == 10 and row_text(t) == "> häß 你好", "wide characters")
    t.type(LEFT)                                # 14: over a whole one
    t.expect(lambda: t.screen.cursor.x == 8, "cursor before the last character")
    t.type(BACKSPACE)                           # 15: a whole one goes
    t.expect(lambda: t.screen.cursor.x == 6 and row_text(t) == "> häß 好", "one character less")
    t.type(END + " 😀")                          # 16
    t.expect(lambda: t.screen.cursor.x == 11 and row_text(t) == "> häß 好 😀", "an emoji")
    t.type(BACKSPACE + "e\u0301")               # 17: an accent of its own has no cell
    t.expect(lambda: t.screen.cursor.x == 10, "a letter and its accent in one cell")
    t.type(CTRL_U + "你" * 39 + "好好")           # 18: a wide character is not cut in two at the edge
    t.expect(lambda: t.screen.cursor.x == 4 and "".join(t.rows()).count("你") == 39, "two rows of wide characters")
    t.type(CTRL_U)
    t.line("")
    t.type("Say 你好 and 😀\r")                   # 19: and they arrive
    t.answer()
    t.type("/save chat.json\r")
    t.said("saved 1 turn")
    messages = json.loads((t.home / "chat.json").read_text())
    equal(messages[0], user("Say 你好 and 😀"))
    leave(t)


def row_text(terminal):
    """The cursor's row; pyte keeps an empty cell behind each wide character."""
    line = terminal.screen.buffer[terminal.screen.cursor.y]
    return "".join(line[x].data for x in range(terminal.screen.columns)).rstrip()


def test_history():
    with tempfile.TemporaryDirectory(prefix="quire-e2e-") as home:
        t = start(*SHORT, home=home)
        for text in ("first", "second"):        # 20, 21
            t.type(text + "\r")
            t.answer()
        t.type(UP)                              # 22
        t.line("second")
        t.type(UP)                              # 23
        t.line("first")
        t.type(DOWN * 2)                        # 24
        t.line("")
        t.type(UP + "!" + CTRL_C)               # 25: Ctrl-C forgets the line
        t.said(r"Ctrl-C again, or Ctrl-D, leaves")
        t.prompt()
        t.type("third\r")                       # 26: and a line between forgives it
        t.answer()
        t.type(CTRL_C)
        t.said("Ctrl-C again")
        t.prompt()
        leave(t)
        kept = Path(home) / ".local/state/quire/history"
        equal(kept.stat().st_mode & 0o777, 0o600, "others may not read it")
        equal([json.loads(line) for line in kept.read_text().splitlines()], ["first", "second", "third"])

        t = start(*SHORT, home=home)            # 27: another chat knows them
        t.type(UP + UP)
        t.line("second")
        t.type(CTRL_U + CTRL_R + "fir")         # 28: and they are searched
        t.expect(lambda: any("fir" in row and "first" in row or row.endswith("first") for row in t.rows()[-4:] + t.rows()), "first")
        t.type("\x1b" + CTRL_E + CTRL_U + CTRL_C)
        t.said("Ctrl-C again")
        t.prompt()
        leave(t)

        before = kept.read_text()
        t = start(*SHORT, "--history", "off", home=home)  # 29
        t.type(UP + "unseen\r")
        t.answer()
        leave(t)
        equal(kept.read_text(), before)


# --- messages of several lines --------------------------------------------------------------------------------

def test_a_paste_is_one_turn():
    t = start(*SHORT)
    t.type(pasted("Add these:\r\r2 and 2\r/clear\r"))   # 30: what is pasted is no command, and not sent yet
    t.line("Add these:\n\n2 and 2\n/clear")
    t.type("\r")                                         # 31: one turn
    t.answer()
    t.type(pasted("a\r\nb\x1b[2J\x07\tc") + "d")         # 32: CRLF, and control characters that would act
    t.line("a\nb[2J    cd")
    t.type(UP)
    t.type(CTRL_C)
    t.said("Ctrl-C again")
    t.prompt()
    t.type(pasted("x " * 2000) + "\r")                   # 33: longer than the window
    t.answer()
    t.command("/save chat.json", "saved 2 turns")
    messages = json.loads((t.home / "chat.json").read_text())
    equal([m["content"] for m in messages[::2]], ["Add these:\n\n2 and 2\n/clear", "x " * 2000])
    leave(t)


def test_lines_that_go_on():
    t = start(*SHORT)
    t.type('"""one\r')                          # 34
    t.line("", lead=". ")
    t.type('two\\\r')
    t.line("", lead=". ")
    t.type('three"""\r')
    t.answer()
    t.type("one \\\r")                          # 35
    t.line("", lead=". ")
    t.type("two\r")
    t.answer()
    t.type("one" + ALT_ENTER + "two")           # 36
    t.line("one\ntwo")
    t.type("\r")
    t.answer()
    t.type('"""begun\r')                        # 37: Ctrl-C forgets what was begun
    t.line("", lead=". ")
    t.type(CTRL_C)
    t.said("Ctrl-C again")
    t.prompt()
    t.command("/save chat.json", "saved 3 turns")
    equal([m["content"] for m in json.loads((t.home / "chat.json").read_text())[::2]],
          ["one\ntwo\\\nthree", "one \ntwo", "one\ntwo"])
    leave(t)


# --- commands -------------------------------------------------------------------------------------------------

def test_commands():
    t = start(*SHORT)
    t.command("/help", r"/save FILE(?s:.*)/bye")                            # 38
    t.command("/set", r"temperature +0\s(?s:.*)max-tokens|max-tokens +8(?s:.*)temperature +0")  # 39
    t.command("/set max_tokens 5", "max-tokens  5")                         # 40
    t.command("/set temprature 1", "did you mean temperature")              # 41
    t.command("/set top-p 3", "0 to 1")                                     # 42
    t.command("/claer", "did you mean /clear")                              # 43
    t.command("/system Speak like a pirate.", "The system message is: Speak like a pirate.")  # 44
    t.type("Hello\r")                                                       # 45: the options are those that were set
    equal(t.answer(), 5)
    answer = api_answer([{"role": "system", "content": "Speak like a pirate."}, user("Hello")], max_tokens=5)
    shown_answer(t, answer["text"], 80)
    t.command("/save chat.json", "saved 1 turn")                            # 46
    saved = t.home / "chat.json"
    equal(saved.stat().st_mode & 0o777, 0o600)
    equal(json.loads(saved.read_text()), [{"role": "system", "content": "Speak like a pirate."}, user("Hello"),
                                          {"role": "assistant", "content": answer["text"]}])
    t.type("/save chat.json\r")                                             # 47
    t.said(r"exists. Replace it\? \[y/N\] $")
    t.type("\r")
    t.said("Not saved")
    t.prompt()
    t.command("/clear", "forgot 1 turn")                                    # 48
    t.command("/load chat.json", "The conversation has 1 turn")             # 49
    t.type("And you?\r")
    t.answer()
    shown_answer(t, api_answer([*json.loads(saved.read_text()), user("And you?")], max_tokens=5)["text"], 80)
    t.command("/save /dev/null", "no regular file")
    for text, says in [("[", "not valid JSON"), ('[{"role": "king", "content": ""}]', "king"), ("[" * 10**6, "nests|JSON"),
                       ('{"messages": 5}', "must be a list"), ("\xff", "JSON|UTF-8")]:
        (t.home / "bad.json").write_bytes(text.encode("latin-1"))
        t.command("/load bad.json", f"bad.json: (?s:.*)({says})")           # 50
    t.command("/load /no/such/file", "/no/such/file")                       # 51
    t.command("/save /no/such/folder/x", "cannot be written")               # 52
    t.command("/save again.json", "saved 2 turns")                          # 53: the bad ones changed nothing
    t.type("/bye\r")                                                        # 54
    t.restored()
    equal(t.exit_code(), 0)


# --- answers on the screen ------------------------------------------------------------------------------------

def test_the_window_may_change():
    t = start("--temperature", 0, "--max-tokens", 40, columns=70)
    question = "Why is the sky blue? Answer in a few sentences."
    t.type(question + "\r")                                                 # 55
    t.answer()
    answer = api_answer([user(question)], max_tokens=40)
    assert len(wrapped(answer["text"], 70)) > 1, "an answer of several rows"
    shown_answer(t, answer["text"], 70)
    t.type("some words that need two rows when the window is narrower")     # 56
    t.line("some words that need two rows when the window is narrower")
    t.resize(40)
    t.line("some words that need two rows when the\n window is narrower", 19)
    t.type("!")                                                             # 57
    t.line("some words that need two rows when the\n window is narrower!", 20)
    t.type(CTRL_U)
    t.line("")
    t.command("/clear", "forgot 1 turn")
    t.type(question + "\r")                                                 # 58: the next answer is wrapped for the new width
    t.answer()
    shown_answer(t, answer["text"], 40)
    t.resize(100)                                                           # 59
    t.line("")
    t.type("wide again")
    t.line("wide again")
    t.type(CTRL_U)
    leave(t)


def test_code_is_coloured_on_a_terminal_only():
    question = "Write a Python program that prints hello. Show the code only, in a code block."
    options = ["--temperature", 0, "--max-tokens", 60]
    answer = api_answer([user(question)], max_tokens=60)
    assert "```" in answer["text"], f"no code to colour in {answer['text']!r}"
    piped = quire("run", "-m", default_model(), *options, question)
    equal(piped.out, answer["text"], "byte for byte")
    for variables, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):   # 60, 61
        t = start(*options, **variables)
        t.type(question + "\r")
        t.answer()
        equal(b"\x1b[36m" in t.raw, coloured)
        leave(t)
    one = Terminal("run", *options, question, columns=50)                   # 62: as an answer of one prompt
    equal(one.exit_code(), 0)
    assert b"\x1b[36m" in one.raw and b"\x1b[?2004h" not in one.raw, one


def test_an_answer_is_stopped():
    t = start("--temperature", 0, "--ignore-eos")
    t.type("Count up from one.\r")
    t.said("one\\.\r\n(?s:.{40})")
    t.type(CTRL_C)                                                          # 63
    assert t.answer() < 2000, t
    t.command("/set max-tokens 60", "max-tokens  60")
    t.type("Go on.\r")                                                      # 64: the conversation goes on
    t.said("(?s:.{20})")
    t.type("typed ahead")                                                   # 65: shown when the answer has ended, not amid it
    t.said(r"cached(?s:.*)> typed ahead$")
    equal(t.text.count("typed"), 1, t)
    t.line("typed ahead")
    t.type(CTRL_U)
    t.prompt()
    leave(t)


def test_a_full_conversation_goes_on():
    t = start("--temperature", 0, "--ignore-eos", "--max-tokens", 20, "--context", 144)
    asked = 0
    while True:                                                             # 66
        t.type(f"This is message number {asked}.\r")
        asked += 1
        if re.search(r"\[Y/n\]", t.said(r"answer\s+\d+\s+token|\[Y/n\] $")[0]):
            break
        t.said(r"> $")
        assert asked < 9, t
    found = re.search(r"has (\d+) of 144\s+tokens(?s:.*)Forget the oldest (\d+) of (\d+)\s+turns", t.text)
    assert found and int(found[3]) == asked - 1, t
    t.type("n\r")                                                           # 67
    t.said("Not sent")
    t.prompt()
    t.command("/save whole.json", f"saved {asked - 1} turns")
    t.type(UP + UP)                                                         # 68: what was not sent can be sent again
    t.line(f"This is message number {asked - 1}.")
    t.type("\r")
    t.said(r"\[Y/n\] $")
    t.type("\r")                                                            # 69
    t.answer()
    t.command("/save rest.json", f"saved {asked - int(found[2])} turns?")
    messages = json.loads((t.home / "rest.json").read_text())
    equal(messages[0], user(f"This is message number {found[2]}."))
    t.type("x " * 200 + "\r")                                               # 70: what never fits drops nothing
    t.said("the context is 144")
    t.prompt()
    t.command("/save same.json", f"saved {len(messages) // 2} turns?")
    leave(t)


# --- the end --------------------------------------------------------------------------------------------------

def test_ctrl_c_twice_leaves():
    t = start(*SHORT)
    t.type("not sent" + CTRL_C)                                             # 71
    t.said("Ctrl-C again")
    t.prompt()
    t.type(CTRL_C)
    t.restored()
    equal(t.exit_code(), 130)


def test_signals_restore_the_terminal():
    for number, busy, code in ((signal.SIGTERM, False, 130), (signal.SIGTERM, True, 130), (signal.SIGHUP, False, -1),
                               (signal.SIGQUIT, True, -3)):                 # 72 to 75
        t = start("--temperature", 0, "--ignore-eos")
        t.type("Count up from one.\r" if busy else "begun")
        t.said("one\\.\r\n(?s:.{40})" if busy else "begun")
        os.kill(t.pid, number)
        t.restored()
        equal(t.exit_code(), code, f"{number}, busy {busy}")


def test_a_closed_terminal_ends_the_chat():
    for busy in (False, True):                                              # 76, 77
        t = start("--temperature", 0, "--ignore-eos")
        t.type("Count up from one.\r" if busy else "begun")
        t.said("one\\.\r\n(?s:.{40})" if busy else "begun")
        os.close(t.terminal)
        end = time.monotonic() + LIMIT_S
        while not (ended := os.waitpid(t.pid, os.WNOHANG))[0]:
            assert time.monotonic() < end, "goes on without a terminal"
            select.select([], [], [], 0.02)
        assert not os.WIFSIGNALED(ended[1]) or os.WTERMSIG(ended[1]) == signal.SIGHUP, ended


def test_a_plain_terminal():
    t = start(*SHORT, TERM="dumb")                                          # 78: no editing, no escapes
    t.type("Hello\r")
    t.said(r"answer\s+\d+\s+token")
    t.said("> $")
    t.type(CTRL_D)
    equal(t.exit_code(), 0)
    assert b"\x1b" not in t.raw, t.raw


# --- one prompt -----------------------------------------------------------------------------------------------

def test_a_models_name_as_prompt_is_a_question():
    with tempfile.TemporaryDirectory(prefix="quire-e2e-") as home:
        models = Path(home) / "cache" / "models"
        models.mkdir(parents=True)
        (models / "mine.gguf").symlink_to(default_model())
        t = Terminal("run", *SHORT, "mine", home=home)                      # 79
        t.said(r"mine is the name of a model. Chat with it\? \[Y/n\] $")
        t.type("\r")
        t.said("/help lists")
        t.prompt()
        leave(t)
        t = Terminal("run", *SHORT, "mine", home=home)                      # 80
        t.said(r"\[Y/n\] $")
        t.type("n\r")
        t.said(r"answer\s+\d+\s+token")
        equal(t.exit_code(), 0)


def test_run_jsonl_and_http_say_the_same():
    model = default_model()
    prompt = "Tell me a short story about a fox."
    options = {"seed": 7, "temperature": 0.8, "max_tokens": 24}
    flags = ["--seed", 7, "--temperature", 0.8, "--max-tokens", 24]
    (line,) = jsonl("run", [{"messages": [user(prompt)]} | options], "-m", model)
    equal(quire("run", "-m", model, *flags, prompt).out, line["text"])
    equal(quire("run", "-m", model, *flags, stdin=prompt + "\n").out, line["text"])
    with Server("--model", model) as server:
        status, _, answer = server.post("/v1/chat/completions", {"messages": [user(prompt)]} | options)
        equal(status, 200, answer)
        equal(answer["choices"][0]["message"]["content"], line["text"])
        equal(set(answer["timings"]), set(line["timings"]), "one vocabulary")
        equal((answer["timings"]["predicted_n"], answer["timings"]["prompt_n"]),
              (line["timings"]["predicted_n"], line["timings"]["prompt_n"]))


def test_the_servers_log_is_readable_on_a_terminal():
    t = Terminal("serve", "--port", 0)
    port = int(t.said(r"http://127\.0\.0\.1:(\d+) serves")[1])
    t.said(r"\d\d:\d\d:\d\d  ready")
    import http.client
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
    connection.request("GET", "/no/such")
    connection.getresponse().read()
    connection.close()
    t.said(r"\d\d:\d\d:\d\d  404  GET /no/such  \d+ ms  \S+  127\.0\.0\.1")
    t.type(CTRL_C)
    equal(t.exit_code(), 0)
    assert '"event"' not in t.raw.decode(), t


if __name__ == "__main__":
    main([test for name, test in list(globals().items()) if name.startswith("test_")])
