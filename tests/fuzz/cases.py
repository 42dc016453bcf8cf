"""Cases: lists of steps, drawn from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.fuzz.broken import broken
from tests.fuzz.grammar import Grammar, Relation
from tests.fuzz.script import Step
from tests.fuzz.values import SECOND, Draw, columns, junk, value

_START = 1_767_225_600 * SECOND
"""The first of January 2026."""
_FORMS = ("tuples", "tuples", "dicts", "arrow", "batch", "pandas")
_FAR = (
    *(4_102_444_800 * SECOND, 9_000 * 31_556_952 * SECOND, 2**61, 2**62, 2**63 - 1),
    *(
        0,
        -1,
        -62_135_596_800 * SECOND,
        -(2**61),
        -(2**62),
        _START // SECOND,
        _START // 1000,
        _START * 1000,
    ),
)


@dataclass
class Case:
    """Steps, and what their queries read; ``exact`` if the oracle can check the results."""

    seed: int
    exact: bool
    steps: list[Step] = field(default_factory=list)
    features: dict[str, set[str]] = field(default_factory=dict)


def draw_case(seed: int, length: int = 120) -> Case:
    """Return the case of a seed."""
    return _Drawing(random.Random(seed), seed, length).case


class _Drawing:
    def __init__(self, draw: Draw, seed: int, length: int) -> None:
        self._draw = draw
        self.case = Case(seed, exact=draw.random() < 0.7)
        self._slack: dict[str, int] = {}
        self._kinds: dict[str, dict[str, str]] = {}
        self._now = _START
        self._newest = _START
        self._queries: list[str] = []
        self._number = 0
        self._relations = self._declare()
        self._grammar = Grammar(draw, self._relations)
        for _ in range(draw.randint(1, 4)):
            self._query(exact=True)
        while len(self.case.steps) < length:
            self._step()
        self._settle()
        for name in self._queries:
            self._add("check", name)

    def _add(self, *step: object) -> None:
        self.case.steps.append(step)

    def _declare(self) -> list[Relation]:
        draw = self._draw
        settings = dict([Grammar(draw, []).setting()]) if draw.random() < 0.4 else {}
        self._add("engine", settings)
        relations = []
        for name in ("A", "B", "C")[: draw.randint(1, 3)]:
            kinds = columns(draw, time=True)
            slack = draw.choice([0, 0, 1, 3]) * SECOND
            self._add("stream", name, kinds, "ts", slack)
            self._slack[name], self._kinds[name] = slack, kinds
            relations.append(Relation(name, kinds))
        if draw.random() < 0.4:
            kinds = columns(draw, time=False)
            rows = [
                tuple(value(draw, kind, huge=False) for kind in kinds.values())
                for _ in range(draw.randint(0, 4))
            ]
            self._add("table", "T", kinds, rows)
            relations.append(Relation("T", kinds, stored=True))
        return relations

    def _query(self, *, exact: bool) -> None:
        drawn = self._grammar.query()
        self._number += 1
        name = f"q{self._number}"
        self._add("query", name, drawn.sql, exact and self.case.exact and not drawn.risky)
        self.case.features[name] = drawn.features
        self._queries.append(name)

    def _step(self) -> None:
        draw = self._draw
        name = draw.choice(self._queries) if self._queries else "none"
        stream = draw.choice(list(self._kinds))
        chance = draw.random()
        if chance < 0.42:
            self._push(stream)
        elif chance < 0.50:
            self._junk(stream)
        elif chance < 0.53:
            self._settle()
            self._add("check", name)
        elif chance < 0.56:
            self._add("advance", self._odd_instant())
        elif chance < 0.68:
            self._add("poll", name)
        elif chance < 0.74:
            self._add("answer", name)
        elif chance < 0.80:
            self._add(draw.choice(["explain", "plan", "stats", "state", "late"]))
        elif chance < 0.97:
            self._broken()
        elif chance < 0.985:
            self._settle()
            self._query(exact=False)
        elif len(self._queries) > 1:
            self._queries.remove(name)
            self._add("drop", name)

    def _odd_instant(self) -> object:
        """Return an instant in the past, or a value that is not an instant."""
        draw = self._draw
        odd: list[object] = [
            self._now - 3 * SECOND,
            "2026-01-01",
            "yesterday",
            None,
            1.5,
            True,
            "2025-01-01T00:00:00+05:00",
            b"",
            [],
        ]
        return draw.choice(odd)

    def _time(self, stream: str) -> int:
        draw = self._draw
        self._now += (
            draw.choice([0, 0, 1, 1, 2, 5])
            * SECOND
            // (1 if self._kinds[stream]["ts"] == "TIMESTAMP_S" else 2)
        )
        time = self._now - draw.choice([0, 0, 0, 1, 2, 9]) * SECOND
        if self._kinds[stream]["ts"] == "TIMESTAMP_S":
            time -= time % SECOND
        self._newest = max(self._newest, time)
        return time

    def _row(self, stream: str) -> tuple[object, ...]:
        draw, kinds = self._draw, self._kinds[stream]
        cells = [
            value(draw, kind, huge=not self.case.exact)
            for name, kind in kinds.items()
            if name != "ts"
        ]
        time = self._time(stream)
        if not self.case.exact and draw.random() < 0.01:
            time = draw.choice(_FAR)
        return (*cells, time)

    def _push(self, stream: str) -> None:
        rows = [self._row(stream) for _ in range(self._draw.choice([1, 1, 2, 3, 5, 12]))]
        self._add("push", stream, self._draw.choice(_FORMS), rows)

    def _junk(self, stream: str) -> None:
        draw = self._draw
        rows: list[object] = [self._row(stream) for _ in range(draw.randint(1, 3))]
        row = list(self._row(stream))
        kind = draw.randrange(5)
        if kind == 0:
            row.append(1)
        elif kind == 1:
            row.pop()
        elif kind == 2:
            row[-1] = draw.choice([None, junk(draw)])
        else:
            row[draw.randrange(len(row))] = junk(draw)
        rows.insert(
            draw.randrange(len(rows) + 1),
            draw.choice([tuple(row)] * 12 + [None, "row", {"nothing": 1}, 7]),
        )
        name = stream if draw.random() < 0.95 else draw.choice(["", "Z", "q1", "T", "\ufeffA"])
        self._add("junk", name, draw.choice(["tuples", "tuples", "dicts", "pandas", "arrow"]), rows)

    def _broken(self) -> None:
        draw = self._draw
        sql = self._grammar.query().sql
        if draw.random() < 0.25:
            script = (
                f"CREATE STREAM S{self._number} (k INT, ts TIMESTAMP); CREATE QUERY z AS {sql}; "
                "SET expiry = 'lazy'; DROP QUERY z"
            )
            self._add("script", broken(draw, script))
        else:
            self._add("broken", broken(draw, sql))

    def _settle(self) -> None:
        """Advance past all rows so far, to an instant that no row has."""
        at = self._newest + SECOND // 4
        self._add("settle", at)
        self._now = at - at % SECOND + SECOND
