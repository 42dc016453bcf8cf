"""Many cases: runs them, counts, and shrinks what fails."""

from __future__ import annotations

import faulthandler
import re
import resource
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.fuzz.cases import Case, draw_case
from tests.fuzz.runner import Outcome, compare_cuts, run_case
from tests.fuzz.script import Step, write_script
from tests.fuzz.shrink import shrink


@dataclass
class Failure:
    """A case that failed, and the fewest steps that fail in the same way."""

    seed: int
    message: str
    steps: list[Step]
    count: int = 1

    def __str__(self) -> str:
        return (
            f"seed {self.seed} ({self.count} times):\n{self.message.strip()}\n"
            f"# replay:\n{write_script(self.steps)}"
        )


@dataclass
class Report:
    """Counts and failures of a run of many cases."""

    steps: int = 0
    cases: int = 0
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    drawn: Counter[str] = field(default_factory=Counter)
    failures: dict[str, Failure] = field(default_factory=dict)

    def add(self, other: Report) -> None:
        """Add the report of another process."""
        self.steps += other.steps
        self.cases += other.cases
        self.seconds = max(self.seconds, other.seconds)
        self.counts += other.counts
        self.accepted += other.accepted
        self.drawn += other.drawn
        for kind, failure in other.failures.items():
            if kind in self.failures:
                self.failures[kind].count += failure.count
            else:
                self.failures[kind] = failure

    def __str__(self) -> str:
        calls = ", ".join(f"{name} {count}" for name, count in sorted(self.counts.items()))
        shares = ", ".join(
            f"{name} {self.accepted[name]}/{count}" for name, count in sorted(self.drawn.items())
        )
        failures = "\n\n".join(
            f"FAILURE {kind}\n{failure}" for kind, failure in self.failures.items()
        )
        speed = self.steps / max(self.seconds, 1e-9)
        return (
            f"{self.steps} steps in {self.cases} cases, {self.seconds:.0f} s, {speed:.0f} steps/s\n"
            f"calls: {calls}\naccepted queries by feature: {shares}\n"
            f"{len(self.failures)} kinds of failures\n{failures}"
        )


_MEMORY = 8 << 30


def run_share(task: tuple[int, int, float, float]) -> Report:
    """Run a campaign as one of several processes, with a limit of memory."""
    seed, steps, seconds, shrinking = task
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    return run_campaign(seed, steps, seconds=seconds, shrinking=shrinking)


def run_campaign(
    seed: int, steps: int, *, seconds: float = float("inf"), shrinking: float = 60.0
) -> Report:
    """Run cases from a seed on until enough steps were run, or time is up.

    ``shrinking`` is the time in seconds for making each kind of failure small.
    """
    report, begin = Report(), time.monotonic()
    while report.steps < steps and time.monotonic() - begin < seconds:
        case = draw_case(seed + report.cases)
        outcome, message = _run(case)
        report.cases += 1
        report.steps += outcome.steps
        report.counts += outcome.counts
        for name, features in case.features.items():
            for feature in features:
                report.drawn[feature] += 1
                report.accepted[feature] += name in outcome.accepted
        if message:
            _note(report, case, message, shrinking)
    report.seconds = time.monotonic() - begin
    return report


def _run(case: Case) -> tuple[Outcome, str]:
    """Run a case; every fourth exact one twice, with different cuts."""
    if case.exact and case.seed % 4 == 0:
        outcome, message = compare_cuts(case.steps, case.seed)
        return outcome, outcome.failure or message
    outcome, _ = run_case(case.steps)
    return outcome, outcome.failure


def _note(report: Report, case: Case, message: str, shrinking: float) -> None:
    kind = kind_of(message)
    if kind in report.failures:
        report.failures[kind].count += 1
        return
    cuts = "cut" in kind

    def fails(steps: Sequence[Step]) -> bool:
        if cuts:
            outcome, found = compare_cuts(steps, case.seed)
            return kind_of(outcome.failure or found) == kind
        return kind_of(run_case(steps)[0].failure) == kind

    report.failures[kind] = Failure(case.seed, message, shrink(case.steps, fails, shrinking))


def kind_of(message: str) -> str:
    """Return what failures of one cause have in common.

    That is the error and where it was raised, without names and numbers.
    """
    if not message:
        return ""
    lines = message.strip().splitlines()
    places = [
        line.strip() for line in lines if line.strip().startswith("File ") and "/muntin/" in line
    ]
    if not places:
        return re.sub(r"\d+", "N", lines[0].partition(": ")[2] or lines[0])[:120]
    place = re.sub(r'.*/muntin/(\S+)", line \d+, in (\S+)', r"\1 \2", places[-1])
    return f"{place}: {re.sub(r'[0-9]+', 'N', lines[-1])[:80]}"
