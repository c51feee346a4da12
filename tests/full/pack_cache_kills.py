#!/usr/bin/env python3
"""Kills a loading server again and again (kill -9) while it writes its pack cache: each start after that gives the right
answers, and the last one finds nothing that a killed one left.

The program is named by QUIRE_BIN, the folder of models by QUIRE_MODELS. QUIRE_KILL_SEED repeats the moments.
"""

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))
from quire_runner import QUIRE, environment, equal, main, succeed  # noqa: E402
from server_runner import default_model  # noqa: E402

KILLS = 15


def answer(model, *arguments):
    outcome = succeed("run", "--model", model, "--max-tokens", 8, "--temperature", 0, *arguments, "The capital of France is")
    return outcome.out, outcome.err


def parts(cache):
    return [path.name for path in cache.iterdir() if ".part" in path.name] if cache.exists() else []


def start_and_kill(model, cache, wait_s):
    """A server with this cache that is killed so long after its part appeared, or after a second if none did."""
    process = subprocess.Popen([QUIRE, "serve", "--port", "0", "--model", model, "--pack-cache", cache], env=environment(),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    began = time.monotonic()
    mine = f".part{process.pid}"
    while time.monotonic() - began < 1 and not any(name.endswith(mine) for name in parts(cache)):
        time.sleep(0.0005)
    time.sleep(wait_s)
    process.kill()
    process.wait()


def test_kills():
    model = default_model()
    seed = int(os.environ.get("QUIRE_KILL_SEED", random.randrange(1 << 30)))
    print(f"seed {seed} (QUIRE_KILL_SEED repeats it)")
    moments = random.Random(seed)
    want = answer(model)[0]
    left = 0
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache"
        for number in range(KILLS):
            for packed in cache.glob("*.packed"):
                packed.unlink()  # so that it is written again
            start_and_kill(model, cache, moments.uniform(0, 0.03))
            left += len(parts(cache))
            if number % 5 == 4:
                equal(answer(model, "--pack-cache", cache)[0], want)
                equal(parts(cache), [], "left after a whole start")
        out, err = answer(model, "--pack-cache", cache)
        assert out == want and "weights copied from" in err, err
        equal([path.name for path in cache.iterdir()], [model.stem + ".packed"])
    print(f"{left} of {KILLS} kills left half a file")
    assert left > 0, "no kill hit a server that was writing"


if __name__ == "__main__":
    main([test_kills])
