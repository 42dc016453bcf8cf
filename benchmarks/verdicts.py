"""Verdicts: what a paper's experiment found, in our own words, beside what our figures say of it.

A verdict is computed from the JSON of a benchmark, never written down. It *holds* when our figures
show what the paper claims, as far as the claim goes; it *holds in direction* when they show the
same order of things with other numbers, or in three of four cases at least; else it *does not
hold*, and a sentence says why. Figures that are not there make no verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Document = Mapping[str, Any]
"""What the JSON of a benchmark says."""

Row = Mapping[str, Any]
_MOST = 0.75
"""The share of cases from which on something holds in direction."""


class Verdict(StrEnum):
    """What our figures say of a claim."""

    HOLDS = "holds"
    DIRECTION = "holds in direction"
    FAILS = "does not hold"
    UNKNOWN = "not measured yet"


@dataclass(frozen=True)
class Outcome:
    """A verdict and the figures it was made from, in words."""

    verdict: Verdict
    result: str


@dataclass(frozen=True)
class Experiment:
    """An experiment of a paper.

    Parameters
    ----------
    paper
        The number of the paper.
    where
        Its section, and figure or table.
    claim
        What the paper found, in our words.
    benchmark
        The benchmark that repeats it.
    judge
        Makes the outcome from the JSON of the benchmark; a figure that is not there is a
        LookupError.
    why
        Why figures differ, where they do.
    """

    paper: int
    where: str
    claim: str
    benchmark: str
    judge: Callable[[Document], Outcome]
    why: str = ""

    def outcome(self, documents: Mapping[str, Document]) -> Outcome:
        """Return the outcome that the available figures show."""
        document = documents.get(self.benchmark)
        if document is None or "error" in document:
            return Outcome(Verdict.UNKNOWN, "")
        try:
            return self.judge(document)
        except LookupError:
            return Outcome(Verdict.UNKNOWN, "the figures that there are leave it out")


def graded(result: str, *, holds: bool, direction: bool = False) -> Outcome:
    """Return an outcome by two questions."""
    return Outcome(
        Verdict.HOLDS if holds else Verdict.DIRECTION if direction else Verdict.FAILS, result
    )


def in_cases(kept: Sequence[bool], result: str) -> Outcome:
    """Return an outcome by how many cases show what is claimed: all, or at least three of four."""
    if not kept:
        raise LookupError("there are no cases")
    return graded(result, holds=all(kept), direction=sum(kept) >= _MOST * len(kept))


def counted(kept: Sequence[bool]) -> str:
    """Return a count and its total as text.

    >>> counted([True, False, True])
    '2 of 3'
    """
    return f"{sum(kept)} of {len(kept)}"


def rows_with(rows: Sequence[Row], **fields: object) -> list[Row]:
    """Return the rows with these values; raise LookupError if there are none.

    Underscores in names stand for blanks.
    """
    wanted = {name.replace("_", " "): value for name, value in fields.items()}
    found = [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]
    if not found:
        raise LookupError(f"no row has {wanted}")
    return found


def claimed(document: Document, beginning: str) -> float:
    """Return the figure of the claim that begins so."""
    found = [
        float(claim["measured"])
        for claim in document["claims"]
        if claim["claim"].startswith(beginning)
    ]
    if not found:
        raise LookupError(f"no claim begins with {beginning!r}")
    return found[0]


def short(number: float) -> str:
    """Return a ratio with three digits.

    >>> [short(number) for number in (0.05678, 1.0, 12.3456, 4567.8)]
    ['0.0568', '1', '12.3', '4,568']
    """
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def percent(share: float) -> str:
    """Return a share, with a decimal if it is small.

    >>> [percent(share) for share in (0.604, 0.0174, 0.0)]
    ['60 %', '1.7 %', '0 %']
    """
    return f"{100 * share:.{1 if 0 < share < 0.1 else 0}f} %"


def between(numbers: Sequence[float]) -> str:
    """From the least to the most.

    >>> between([3.0, 1.5]), between([2.0, 2.0])
    ('1.5 to 3', '2')
    """
    least, most = short(min(numbers)), short(max(numbers))
    return least if least == most else f"{least} to {most}"
