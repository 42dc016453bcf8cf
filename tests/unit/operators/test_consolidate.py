"""Net changes of every instant, against counting in Python."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.expressions.duck import Duck
from muntin.operators.consolidate import consolidate

DUCK = Duck()
Change = tuple[str, int, int | None, str | None]
CHANGES = st.lists(
    st.tuples(
        st.sampled_from("+-"),
        st.integers(-2, 2),
        st.sampled_from([1, 2, None]),
        st.sampled_from(["", "x", None]),
    ),
    max_size=30,
)


def table(changes: list[Change]) -> pa.Table:
    columns = [list(column) for column in zip(*changes, strict=True)] or [[], [], [], []]
    return pa.table({
        "_op": pa.array(columns[0], pa.string()),
        "_ts": pa.array(columns[1], pa.int64()).cast(pa.timestamp("us")),
        "n": pa.array(columns[2], pa.int64()), "n2": pa.array(columns[3], pa.string()),
    })  # fmt: skip


def rows(given: pa.Table) -> list[Change]:
    instants = given.column("_ts").cast(pa.int64()).to_pylist()
    return list(
        zip(
            given.column("_op").to_pylist(),
            instants,
            given.column("n").to_pylist(),
            given.column("n2").to_pylist(),
            strict=True,
        )
    )


@given(CHANGES)
def test_no_row_is_both_removed_and_added_at_one_instant(changes: list[Change]) -> None:
    found = rows(consolidate(table(changes), DUCK))
    net: Counter[tuple[int, int | None, str | None]] = Counter()
    for sign, *row in changes:
        net[tuple(row)] += 1 if sign == "+" else -1  # type: ignore[index]
    expected = Counter(
        {("+" if count > 0 else "-", *row): abs(count) for row, count in net.items() if count}
    )
    assert Counter(found) == expected
    assert [row[1] for row in found] == sorted(row[1] for row in found)


@given(CHANGES)
def test_remaining_changes_keep_their_order(changes: list[Change]) -> None:
    by_time = sorted(changes, key=lambda change: change[1])
    left = iter(by_time)
    assert all(
        any(change == other for other in left) for change in rows(consolidate(table(changes), DUCK))
    )


@pytest.mark.parametrize(
    "changes", [[("+", 1, 1, ""), ("+", 1, 1, "")], [("-", 1, 1, ""), ("+", 2, 1, "")], []]
)
def test_instants_with_only_additions_or_only_removals_are_unchanged(changes: list[Change]) -> None:
    assert rows(consolidate(table(changes), DUCK)) == changes


def test_nested_values_are_compared_by_their_parts() -> None:
    given = pa.table({
        "_op": ["+", "-", "+"], "_ts": pa.array([0, 0, 0]).cast(pa.timestamp("us")),
        "l": pa.array([[1, None], [1, None], [1]]), "s": pa.array([{"a": float("nan")}] * 3),
    })  # fmt: skip
    assert consolidate(given, DUCK).column("l").to_pylist() == [[1]]
