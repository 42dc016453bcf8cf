"""Random programs against the engine: no crash, no hang, no raw exception, no wrong result."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

import muntin
from tests.fuzz import runner
from tests.fuzz.campaign import kind_of
from tests.fuzz.cases import draw_case
from tests.fuzz.runner import run_case
from tests.fuzz.script import Step, read_script, write_script
from tests.fuzz.shrink import shrink

ROOT = Path(__file__).parents[2]


def run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.fuzz", *options]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )


def seed_of_commit() -> int:
    """Return a seed per commit: whoever checks it out finds the same failures."""
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return (
        int(done.stdout, 16) % (1 << 40)
        if done.returncode == 0
        else random.SystemRandom().randrange(1 << 40)
    )


def test_random_programs_from_a_new_seed_for_every_commit() -> None:
    done = run(
        "--steps", "5000", "--shrinking", "15", "--processes", "2", "--seed", str(seed_of_commit())
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split("\n")[1].split()[0]) >= 5_000
    sys.stdout.write(done.stdout)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_fixed_seeds(seed: int) -> None:
    outcome, _ = run_case(draw_case(seed).steps)
    assert not outcome.failure, f"{outcome.failure}\n{write_script(draw_case(seed).steps)}"
    assert outcome.counts["push done"] > 10


def test_a_seed_always_gives_the_same_case() -> None:
    assert repr(draw_case(7).steps) == repr(draw_case(7).steps)


def test_scripts_are_read_back_as_they_were_written() -> None:
    for seed in range(30):
        steps = draw_case(seed).steps
        assert write_script(read_script(write_script(steps))) == write_script(steps)


def test_most_drawn_queries_are_accepted() -> None:
    drawn = accepted = 0
    for seed in range(5):
        case = draw_case(seed, length=0)
        outcome, _ = run_case(case.steps)
        drawn += len(case.features)
        accepted += len(outcome.accepted)
    assert accepted >= 0.8 * drawn


STEPS: list[Step] = [
    ("engine", {}),
    ("stream", "A", {"k": "INTEGER", "ts": "TIMESTAMP"}, "ts", 0),
    ("query", "q1", "SELECT k FROM A WINDOW 5 SECONDS", True),
    ("push", "A", "tuples", [(1, 1_000_000), (2, 2_000_000)]),
    ("poll", "q1"),
    ("push", "A", "tuples", [(3, 3_000_000), (4, 4_000_000), (5, 5_000_000)]),
    ("settle", 6_000_000),
    ("check", "q1"),
]


def forget_a_row(engine: muntin.Engine, stream: str, rows: list[object]) -> None:
    PUSH(engine, stream, rows[1:] if len(rows) > 2 else rows)


PUSH = muntin.Engine.push


def test_a_wrong_result_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not run_case(STEPS)[0].failure
    monkeypatch.setattr(muntin.Engine, "push", forget_a_row)
    failure = run_case(STEPS)[0].failure
    assert kind_of(failure) == "the answer differs from the oracle"


def test_a_failure_is_shrunk_to_its_steps_and_rows() -> None:
    steps = draw_case(5).steps * 3
    steps.insert(100, ("push", "A", "tuples", [(1,), (7,), (3,)]))
    steps.insert(200, ("check", "odd"))

    def fails(some: Sequence[Step]) -> bool:
        pushed = [(7,) in step[3] for step in some if step[0] == "push"]
        return any(pushed) and ("check", "odd") in some

    assert shrink(steps, fails) == [("push", "A", "tuples", [(7,)]), ("check", "odd")]


def wait(*_: object) -> None:
    time.sleep(30)


def compute(*_: object) -> None:
    begin = time.monotonic()
    while time.monotonic() < begin + 30:
        pass


def test_a_raw_exception_and_a_hang_are_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(muntin.Engine, "push", fail)
    assert "ZeroDivisionError" in run_case(STEPS)[0].failure
    monkeypatch.setattr(runner, "DEADLINE", 0.2)
    for hang in (wait, compute):
        monkeypatch.setattr(muntin.Engine, "push", hang)
        assert "HangError" in run_case(STEPS)[0].failure
