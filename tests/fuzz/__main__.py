"""Run the fuzzer: ``python -m tests.fuzz --steps 1000000 --processes 2``.

The exit code is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.fuzz.campaign import Report, run_share
from tests.fuzz.runner import run_case
from tests.fuzz.script import read_script

_APART = 1 << 24


def main() -> int:
    """Run the campaign described by the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--steps", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 40))
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--shrinking", type=float, default=60.0, help="seconds per kind of failure")
    parser.add_argument("--replay", type=Path, help="a file with the steps of a failure")
    arguments = parser.parse_args()
    if arguments.replay:
        outcome, _ = run_case(read_script(arguments.replay.read_text(encoding="utf-8")))
        sys.stdout.write(f"{outcome.failure or 'passed'}\n")
        return 1 if outcome.failure else 0
    sys.stdout.write(f"seed {arguments.seed}\n")
    sys.stdout.flush()
    share = -(-arguments.steps // arguments.processes)
    work = [
        (arguments.seed + number * _APART, share, arguments.seconds, arguments.shrinking)
        for number in range(arguments.processes)
    ]
    report = Report()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(arguments.processes, context) as pool:  # raises when a process dies
        for part in pool.map(run_share, work):
            report.add(part)
    sys.stdout.write(f"{report}\n")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
