"""Random programs against the engine: no crash, no hang, no raw exception, no wrong result."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fuzz.campaign import kind_of
from tests.fuzz.cases import draw_case
from tests.fuzz.runner import run_case
from tests.fuzz.script import read_script, write_script
from tests.fuzz.shrink import shrink

ROOT = Path(__file__).parents[2]


def run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.fuzz", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)


def test_random_programs_from_a_new_seed_every_time() -> None:
    done = run("--steps", "5000", "--shrinking", "15", "--processes", "2", "--seed", str(random.SystemRandom().randrange(1 << 40)))
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


def test_a_wrong_result_is_found_and_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fuzzer itself: an engine that forgets a row is caught, and the steps left are few."""
    import muntin  # noqa: PLC0415

    push = muntin.Engine.push
    monkeypatch.setattr(muntin.Engine, "push", lambda self, stream, rows: push(self, stream, rows[1:] if len(rows) > 4 else rows))
    steps, kind = next(
        (case.steps, kind_of(outcome.failure))
        for case in map(draw_case, range(100, 140))
        if case.exact and "oracle" in (outcome := run_case(case.steps)[0]).failure
    )
    small = shrink(steps, lambda some: kind_of(run_case(some)[0].failure) == kind, 20)
    assert len(small) < 12
    assert kind_of(run_case(small)[0].failure) == kind
