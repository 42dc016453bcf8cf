"""Outer, semi and anti joins with EMIT INSERTS, against a reference in plain Python.

A match is emitted when its newer row arrives, a row without any when it leaves its window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from hypothesis import given, note
from hypothesis import strategies as st

import muntin

SECOND = 1_000_000
KINDS = ("LEFT", "RIGHT", "FULL", "SEMI", "ANTI")
LAST = 40
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (times of results have no zone)


class Row(NamedTuple):
    time: int
    stream: str
    key: int | None
    value: int


windows = st.integers(1, 6)
rows = st.lists(
    st.builds(
        Row,
        st.integers(0, 15),
        st.sampled_from("AB"),
        st.sampled_from([1, 1, 2, 3, None]),
        st.integers(1, 3),
    ),
    max_size=14,
)
CONDITIONS: Mapping[str, Callable[[Row, Row], bool]] = {
    "A.k = B.k": lambda a, b: a.key is not None and a.key == b.key,
    "A.k = B.k AND A.v < B.v": lambda a, b: (
        a.key is not None and a.key == b.key and a.value < b.value
    ),
    "A.k = B.k AND A.v > 1": lambda a, b: a.key is not None and a.key == b.key and a.value > 1,
    "A.k = B.k AND B.v <> 2": lambda a, b: a.key is not None and a.key == b.key and b.value != 2,
    "A.v < B.v": lambda a, b: a.value < b.value,
    "A.k = B.k OR A.v = B.v + 1": lambda a, b: (
        (a.key is not None and a.key == b.key) or a.value == b.value + 1
    ),
}


def expected(
    kind: str, on: str, sizes: tuple[int, int], fed: list[Row]
) -> Counter[tuple[int, object, object]]:
    """Return the results: the instant, the value of A and that of B."""
    streams = {name: [row for row in fed if row.stream == name] for name in "AB"}
    limit = dict(zip("AB", sizes, strict=True))
    order = sorted(
        (row.time, name, place) for name in "AB" for place, row in enumerate(streams[name])
    )
    rank = {(name, place): at for at, (_, name, place) in enumerate(order)}
    matched: dict[tuple[str, int], int] = {}
    found: Counter[tuple[int, object, object]] = Counter()
    for newest in order:
        for a, left in enumerate(streams["A"]):
            for b, right in enumerate(streams["B"]):
                newer = max(("A", a), ("B", b), key=rank.__getitem__)
                older = min(("A", a), ("B", b), key=rank.__getitem__)
                time, name, place = newest
                if newer != (name, place) or not CONDITIONS[on](left, right):
                    continue
                if streams[older[0]][older[1]].time + limit[older[0]] <= time:
                    continue
                matched.setdefault(("A", a), time)
                matched.setdefault(("B", b), time)
                if kind in {"LEFT", "RIGHT", "FULL"}:
                    found[time, left.value, right.value] += 1
    kept = {"RIGHT": "B", "FULL": "AB"}.get(kind, "A")
    for name in kept:
        for place, row in enumerate(streams[name]):
            shown = (row.value, None) if name == "A" else (None, row.value)
            first, end = matched.get((name, place)), row.time + limit[name]
            if kind == "SEMI" and first is not None:
                found[first, *shown] += 1
            if kind != "SEMI" and first is None:
                found[end, *shown] += 1
    return found


@given(
    kind=st.sampled_from(KINDS),
    on=st.sampled_from(sorted(CONDITIONS)),
    sizes=st.tuples(windows, windows),
    fed=rows,
    strategy=st.sampled_from(["negative", "hybrid", "probing"]),
    cuts=st.sets(st.integers(0, 25)),
)
def test_each_row_is_emitted_once(
    kind: str,
    on: str,
    sizes: tuple[int, int],
    fed: list[Row],
    strategy: str,
    cuts: set[int],
) -> None:
    fed = sorted(fed, key=lambda row: row.time)
    engine = muntin.Engine(pipeline=strategy)
    for name in "AB":
        engine.stream(name, {"k": "bigint", "v": "bigint", "ts": "timestamp"}, time="ts")
    items = "A.v AS a" if kind in {"SEMI", "ANTI"} else "A.v AS a, B.v AS b"
    sources = [f"{name} [RANGE {size} SECONDS]" for name, size in zip("AB", sizes, strict=True)]
    sql = f"SELECT {items} FROM {sources[0]} {kind} JOIN {sources[1]} ON {on}"
    note(sql)
    query = engine.query(sql, name="q")
    found: Counter[tuple[int, object, object]] = Counter()
    for before, until in pairwise([-1, *sorted(cuts), LAST]):
        for name in "AB":
            part = [row for row in fed if row.stream == name and before < row.time <= until]
            engine.push(name, [(row.key, row.value, row.time * SECOND) for row in part])
        engine.advance(until * SECOND)
        for row in query.poll().to_pylist():
            assert row["_op"] == "+"
            seconds = (row["_ts"] - EPOCH) // timedelta(seconds=1)
            found[seconds, row["a"], row.get("b")] += 1
    assert found == expected(kind, on, sizes, fed)
