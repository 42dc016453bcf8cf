"""Makes a failing case small: leaves out steps, rows and cells while it fails in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from tests.fuzz.script import Step


def shrink(
    steps: Sequence[Step], fails: Callable[[Sequence[Step]], bool], seconds: float = 60.0
) -> list[Step]:
    """Return steps of which none can be left out; ``fails`` tests whether some steps still fail."""
    until = time.monotonic() + seconds
    found = list(steps)
    while (
        (front := found[: len(found) * 9 // 10]) != found
        and time.monotonic() < until
        and fails(front)
    ):
        found = front
    for word in sorted(
        {step[0] for step in found}
    ):  # all steps of one kind first: most are irrelevant
        rest = [step for step in found if step[0] != word]
        found = rest if time.monotonic() < until and fails(rest) else found
    found = _fewer(found, fails, until)
    for number in reversed(range(len(found))):
        step = found[number]
        if step[0] in {"push", "junk"}:

            def fails_with(rows: Sequence[Any], number: int = number, step: Step = step) -> bool:
                return fails([*found[:number], (*step[:3], list(rows)), *found[number + 1 :]])

            found[number] = (*step[:3], _fewer(list(step[3]), fails_with, until))
    return _fewer(found, fails, until)


def _fewer(items: list[Any], fails: Callable[[Sequence[Any]], bool], until: float) -> list[Any]:
    """Minimize by delta debugging: leave out halves, quarters, and so on down to single items."""
    size = max(len(items) // 2, 1)
    while time.monotonic() < until:
        place, shorter = 0, False
        while place < len(items) and time.monotonic() < until:
            rest = items[:place] + items[place + size :]
            if fails(rest):
                items, shorter = rest, True
            else:
                place += size
        if size == 1 and not shorter:
            break
        size = max(size // 2, 1)
    return items
