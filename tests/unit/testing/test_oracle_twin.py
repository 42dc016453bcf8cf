"""The oracle against a twin that enumerates every combination and window in plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from muntin.model.window import PartitionedWindow, RowsWindow, TimeWindow, Window
from muntin.plan.query import Emit

SECOND = 1_000_000
LAST = 20


@dataclass(frozen=True)
class Row:
    stream: str
    time: int
    k: int | None
    v: int | None
    position: int = -1


Pair = tuple[str, Callable[[Row, Row], bool]]

# Conditions between two entries of FROM, in SQL over flat names and in Python.
PAIRS: list[Pair] = [
    ('"{0}.k" = "{1}.k"', lambda a, b: a.k is not None and a.k == b.k),
    ('"{0}.v" < "{1}.v"', lambda a, b: a.v is not None and b.v is not None and a.v < b.v),
    ('"{0}.k" = "{1}.v" OR "{0}.v" = 2', lambda a, b: (a.k is not None and a.k == b.v) or a.v == 2),
    ("true", lambda _a, _b: True),
]

numbers = st.sampled_from([1, 2, 3, None])
arrived = st.lists(
    st.builds(Row, st.sampled_from("ABC"), st.integers(0, 9), numbers, numbers), max_size=9
)
windows: st.SearchStrategy[Window] = st.one_of(
    st.integers(1, 6).map(lambda seconds: TimeWindow(seconds * SECOND)),
    st.integers(1, 3).map(RowsWindow),
    st.integers(1, 2).map(lambda rows: PartitionedWindow(("k",), rows)),
)
sources = st.lists(st.tuples(st.sampled_from("ABC"), windows), min_size=1, max_size=3)


def ordered(rows: list[Row]) -> list[Row]:
    in_order = sorted(rows, key=lambda row: (row.time, row.stream))
    return [
        Row(row.stream, row.time, row.k, row.v, position) for position, row in enumerate(in_order)
    ]


def inside(window: Window, seen: list[Row], now: int) -> list[Row]:
    """Return the rows inside a window at ``now``, after exactly the rows ``seen`` of its stream."""
    match window:
        case TimeWindow(micros):
            return [row for row in seen if now - micros // SECOND < row.time]
        case RowsWindow(count):
            return seen[-count:]
        case PartitionedWindow(_, count):
            return [
                row for row in seen if row in [other for other in seen if other.k == row.k][-count:]
            ]
        case _:
            raise AssertionError(window)


def holds(members: tuple[Row, ...], pairs: list[Pair]) -> bool:
    return all(
        condition(left, right)
        for (left, right), (_, condition) in zip(pairwise(members), pairs, strict=True)
    )


def twin_inserts(
    entries: list[tuple[str, Window]], rows: list[Row], pairs: list[Pair]
) -> list[tuple[int, tuple[int | None, ...]]]:
    results = []
    for newest in rows:
        for place, (stream, _) in enumerate(entries):
            if stream != newest.stream:
                continue
            contents = []
            for other, (name, window) in enumerate(entries):
                # Entries after the newest one have not seen the newest row yet; otherwise the pair
                # would appear twice.
                seen = [
                    row for row in rows if row.stream == name and row.position <= newest.position
                ]
                partners = [newest] if other == place else inside(window, seen, newest.time)
                contents.append(
                    [row for row in reversed(partners) if other <= place or row != newest]
                )
            results += [
                (newest.time, tuple(row.v for row in members))
                for members in product(*contents)
                if holds(members, pairs)
            ]
    return results


def twin_answer(
    entries: list[tuple[str, Window]], rows: list[Row], pairs: list[Pair], now: int
) -> Counter[tuple[int | None, ...]]:
    contents = [
        inside(window, [row for row in rows if row.stream == name and row.time <= now], now)
        for name, window in entries
    ]
    return Counter(
        tuple(row.v for row in members) for members in product(*contents) if holds(members, pairs)
    )


@settings(deadline=None)
@given(
    entries=sources,
    arrivals=arrived,
    pairs=st.lists(st.sampled_from(PAIRS), min_size=2, max_size=2),
    every=st.sampled_from([None, 2, 5]),
)
def test_the_oracle_equals_its_twin(
    workshop: Any,
    entries: list[tuple[str, Window]],
    arrivals: list[Row],
    pairs: list[Pair],
    every: int | None,
) -> None:
    pairs = pairs[: len(entries) - 1]
    where = [sql.format(place, place + 1) for place, (sql, _) in enumerate(pairs)]
    streams = {
        name: workshop.rows(*((row.time, row.k, row.v) for row in arrivals if row.stream == name))
        for name in "ABC"
    }
    oracle = workshop.oracle(workshop.query(entries, where, every=every), **streams)
    rows = ordered(arrivals)

    inserted = twin_inserts(entries, rows, pairs)
    assert workshop.stamped(oracle.inserts()) == [
        ("+", -(-time // every) * every if every else time, *values) for time, values in inserted
    ]

    answers = {
        second: twin_answer(entries, rows, pairs, second - second % every if every else second)
        for second in range(-1, LAST)
    }
    for second in (-1, 3, 7, LAST - 1):
        assert Counter(workshop.bag(oracle.answer(second * SECOND))) == answers[second]

    changes = workshop.oracle(
        workshop.query(entries, where, every=every, emit=Emit.CHANGES), **streams
    ).changes((LAST - 1) * SECOND)
    expected: Counter[tuple[Any, ...]] = Counter()
    for before, now in pairwise(range(-1, LAST)):
        expected.update(
            ("+", now, *values) for values in (answers[now] - answers[before]).elements()
        )
        expected.update(
            ("-", now, *values) for values in (answers[before] - answers[now]).elements()
        )
    assert Counter(workshop.stamped(changes)) == expected
