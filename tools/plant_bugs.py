#!/usr/bin/env python3
"""Plants bugs in the engine, one at a time, and says which test catches each: what the table in docs/testing.md is made of.

Works on a copy of the sources in build/planted (built through ccache where there is one), so nothing of the checkout
changes. Exits with 1 when a bug is caught by nothing. `--list` names the bugs; a name as argument plants only those.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / "build/planted"
TESTS = ("quire_core_simulation_test", "quire_sched_test", "quire_engine_test", "quire_serving_engine_test")
LIMIT_S = 60  # a bug may make a test hang

CORE = "src/engine/engine_core.cc"
SAMPLER = "src/engine/step_sampler.cc"
SERVING = "src/engine/serving_engine.cc"
INBOX = "src/engine/inbox.cc"
LIMITS = "src/engine/request_limits.cc"


@dataclass(frozen=True)
class Bug:
    name: str
    file: str
    old: str  # stands there exactly once
    new: str


BUGS = [
    Bug("no expiry", CORE, "  expire(start_ns);\n", ""),
    Bug("a failed step is forgotten", CORE, "branch->second.request->failure = why;", "(void)why;"),
    Bug("a failed step ends the requests beside it too", CORE, "  settle(scheduler_->fail_step(), now_ns);",
        "  for (auto& [id, live] : requests_) if (live->failure.ok()) live->failure = why;\n  settle(scheduler_->fail_step(), now_ns);\n"
        "  while (!requests_.empty()) withdraw(*requests_.begin()->second, why, now_ns);"),
    Bug("the terminal event twice", CORE, "  on_event(std::move(event));\n}\n\nvoid EngineCore::update_gauges",
        "  on_event(event);\n  on_event(std::move(event));\n}\n\nvoid EngineCore::update_gauges"),
    Bug("the terminal event lost", CORE, "  on_event(std::move(event));\n}\n\nvoid EngineCore::update_gauges",
        "  if (event.error.code() != StatusCode::kCancelled) on_event(std::move(event));\n}\n\nvoid EngineCore::update_gauges"),
    Bug("a cancel in a step is lost", CORE, "    withdrawals_.push_back({std::string(id), why});\n    return;", "    return;"),
    Bug("a cancel in a step waits for the next", CORE, "    apply_withdrawals(clock());\n  }\n  stepping_ = false;",
        "  }\n  stepping_ = false;"),
    Bug("tokens after a cancel", CORE, "  if (!live.failure.ok()) {\n    if (sampled.tokens.empty())",
        "  if (!live.failure.ok() && sampled.tokens.empty()) {\n    if (sampled.tokens.empty())"),
    Bug("a fork is lost", CORE, "      branches_[row.id + j] = {&live, branch.choice + j};\n",
        "      if (j == 0) branches_[row.id + j] = {&live, branch.choice + j};\n"),
    Bug("branches speak for the first choice", CORE, "take_tokens(live, branch.choice + j, sampled, now_ns)",
        "take_tokens(live, branch.choice, sampled, now_ns)"),
    Bug("end tokens are ignored", CORE, "if (!request.ignore_eos && std::binary_search(", "if (false && std::binary_search("),
    Bug("stop tokens are ignored", CORE, "return std::ranges::binary_search(request.stop_token_ids, token);",
        "return false;"),
    Bug("stop strings are ignored", CORE, "choice.generated > live.request.sampling.min_tokens);", "false);"),
    Bug("text goes on behind its end", CORE, "    if (stopped) break;\n", ""),
    Bug("what is cut off is committed all the same", CORE, "  sampled.tokens = event.ids;  //", "  //"),
    Bug("an ignored EOS is masked by min_tokens", CORE, "if (!live.request.ignore_eos) mask.insert(", "mask.insert("),
    Bug("min_tokens masks no stop token", CORE, "      mask = live.request.stop_token_ids;\n", ""),
    Bug("choices of no tokens never end", CORE, "const bool for_all = branch.request->request.max_tokens == 0;",
        "const bool for_all = false;"),
    Bug("prompt scores are of the token itself", CORE, "end - row.logit_rows + 1; next <= end", "end - row.logit_rows; next < end"),
    Bug("sleeps through deadlines", CORE, "wake_at_ns_ = std::min({wake_at_ns_, request->deadline_ns(), request->queue_deadline_ns()});", "(void)request;"),
    Bug("ended sequences keep their samplers", CORE, "j < live.request.choices; ++j) sampling_.ended.push_back(live.first_id + j);",
        "j < 0; ++j) sampling_.ended.push_back(live.first_id + j);"),
    Bug("time in the queue counts while running", CORE, "request.max_queue_ms > 0 && started_ns == kNever ?", "request.max_queue_ms > 0 ?"),
    Bug("a draft is accepted unseen", SAMPLER, "(row.drafts == 0 || sequence.tokens.back() == row.draft)", "true"),
    Bug("a row after a wrong draft counts", SAMPLER, "sequence.tokens.size() == static_cast<size_t>(row.drafts) &&", ""),
    Bug("the sampler is not told of its token", SAMPLER, "  state.sampler.accept(*token);\n", ""),
    Bug("every draw has the first one's bits", SAMPLER, "  ++state.sampled;\n", ""),
    Bug("branches share a seed", SAMPLER, "branch_seed(params->seed, static_cast<uint64_t>(j))", "params->seed"),
    Bug("the inbox is not counted", INBOX, "QueueUse all = mailed_;", "QueueUse all;"),
    Bug("what is on its way is not counted", INBOX, "  all += taken_;\n", ""),
    Bug("the inbox counts no tokens", INBOX, ".requests = 1, .tokens = prompt}", ".requests = 1, .tokens = 0}"),
    Bug("a long prompt is refused for ever", "src/sched/queue_limits.cc", "waiting.tokens == 0 || ", ""),
    Bug("a request that the core refuses hears nothing", SERVING, "    count_down(std::move(failed));\n", ""),
    Bug("cancellations are dropped", SERVING, "core.cancel(id, cancelled(\"cancelled by the client\"), now_ns());", "(void)id;"),
    Bug("live requests are not counted down", SERVING, "      if (terminal) live_.fetch_sub(1);\n", "      (void)terminal;\n"),
    Bug("draining takes more", SERVING, "if (state == State::kDraining) return", "if (false) return"),
    Bug("one token more than the context", LIMITS, "return std::min(context, kv_tokens + 1) - prompt_tokens;",
        "return std::min(context, kv_tokens + 1) - prompt_tokens + 1;"),
    Bug("the limit of step time ignores drafts", "src/sched/policy.cc", "if (view.drafts.rows == 0 || !view.cost->fitted())", "if (true)"),
]


def copy_sources() -> None:
    COPY.mkdir(parents=True, exist_ok=True)
    for name in ("src", "tests", "cmake", "bench", "data", "tools"):
        subprocess.run(["cp", "-a", "--update", "--no-target-directory", ROOT / name, COPY / name], check=True)
    for name in ("CMakeLists.txt", "CMakePresets.json"):
        shutil.copy2(ROOT / name, COPY / name)


def build() -> str:
    """The compiler's words where it fails; else nothing."""
    environment = os.environ | {"CCACHE_BASEDIR": str(COPY), "CCACHE_NOHASHDIR": "1"}
    tree = COPY / "build/release"
    if not (tree / "build.ninja").exists():
        subprocess.run(["cmake", "--preset", "release"], cwd=COPY, env=environment, check=True, capture_output=True)
    run = subprocess.run(["ninja", "-C", tree, *(f"bin/{test}" for test in TESTS)], env=environment, capture_output=True, text=True)
    return "" if run.returncode == 0 else run.stdout + run.stderr


def failing_tests() -> list:
    """Names of tests that fail, hang or crash; at most the first of each program."""
    caught = []
    for test in TESTS:
        program = COPY / "build/release/bin" / test
        try:
            run = subprocess.run([program, "--gtest_brief=1", "--gtest_fail_fast"], cwd=COPY, capture_output=True, text=True,
                                 errors="replace", timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            caught.append(f"{test} (hangs)")
            continue
        if run.returncode == 0:
            continue
        names = re.findall(r"^\[  FAILED  \] ([\w./]+)", run.stdout, re.M)
        caught.append(names[0] if names else f"{test} (stops)")
    return caught


def plant(bug: Bug) -> list:
    path = COPY / bug.file
    text = (ROOT / bug.file).read_text()
    if text.count(bug.old) != 1:
        sys.exit(f"plant_bugs: \"{bug.name}\": its place stands {text.count(bug.old)} times in {bug.file}; mend the table")
    path.write_text(text.replace(bug.old, bug.new))
    try:
        if words := build():
            sys.exit(f"plant_bugs: \"{bug.name}\" does not compile:\n{words[-3000:]}")
        return failing_tests()
    finally:
        path.write_text(text)


def main() -> int:
    parser = argparse.ArgumentParser(description="Plant bugs and see which test catches them.")
    parser.add_argument("names", nargs="*", help="only these")
    parser.add_argument("--list", action="store_true", help="name the bugs")
    arguments = parser.parse_args()
    chosen = [bug for bug in BUGS if not arguments.names or bug.name in arguments.names]
    if arguments.list:
        print("\n".join(bug.name for bug in chosen))
        return 0
    copy_sources()
    if words := build():
        sys.exit(f"plant_bugs: the sources do not compile:\n{words[-3000:]}")
    if broken := failing_tests():
        sys.exit(f"plant_bugs: without a planted bug these fail: {', '.join(broken)}")
    survivors = 0
    print("| bug | caught by |\n|---|---|", flush=True)
    for bug in chosen:
        began = time.monotonic()
        caught = plant(bug)
        survivors += not caught
        print(f"| {bug.name} | {'; '.join(f'`{name}`' for name in caught) or '**nothing**'} |", flush=True)
        print(f"plant_bugs: {bug.name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    print(f"\n{len(chosen) - survivors} of {len(chosen)} caught", file=sys.stderr)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
