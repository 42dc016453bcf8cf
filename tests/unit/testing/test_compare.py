from __future__ import annotations

import pyarrow as pa
import pytest

from muntin.testing.compare import (
    accumulate,
    assert_same_changes,
    assert_same_rows,
    assert_same_sequence,
    changes_difference,
    difference,
    ordered_difference,
    text_table,
)

NAN = float("nan")


def column(
    *values: object,
    type: pa.DataType | None = None,  # noqa: A002 - as Arrow calls it
) -> pa.Table:
    return pa.table({"x": pa.array(values, type=type)})


def changelog(*changes: tuple[str, int, int]) -> pa.Table:
    signs, times, values = zip(*changes, strict=True)
    return pa.table({"_op": signs, "_ts": pa.array(times, type=pa.timestamp("us")), "x": values})


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (column(1, 2, 2), column(2, 1, 2)),
        (column(None, 1), column(1, None)),
        (column(NAN, 1.5), column(1.5, NAN)),
        (column([1, None], [NAN]), column([NAN], [1, None])),
        (column({"a": [1], "b": None}), column({"a": [1], "b": None})),
        (column(b"\x00"), column(b"\x00")),
        (column(1, type=pa.timestamp("ns")), column(1, type=pa.timestamp("ns"))),
        (column(type=pa.int64()), column(type=pa.int64())),
    ],
)
def test_equal_as_multisets(left: pa.Table, right: pa.Table) -> None:
    assert difference(left, right) == ""


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (column(1, 2, 2), column(1, 1, 2)),
        (column(0.0), column(-0.0)),
        (column(0.1 + 0.2), column(0.3)),
        (column(None, type=pa.float64()), column(NAN)),
        (column("NULL"), column(None, type=pa.string())),
        (column([1, None]), column([None, 1])),
        (column({"a": 1}), column({"a": 2})),
        (column(2**53 + 1), column(2**53)),
    ],
)
def test_different_as_multisets(left: pa.Table, right: pa.Table) -> None:
    assert difference(left, right) != ""


def test_the_difference_shows_rows_that_are_missing_and_rows_too_many() -> None:
    expected = "missing (1 row):\n  x\n  'a b'\nsurplus (2 rows):\n  x\n  NULL\n  NULL"
    assert difference(column("a b", "c"), column("c", None, None)) == expected


def test_names_and_types_count() -> None:
    assert "x int32" in difference(column(1, type=pa.int32()), column(1, type=pa.int64()))
    assert (
        difference(column(1), column(1).rename_columns(["y"]))
        == "expected the columns (x int64)\ngot the columns      (y int64)"
    )


def test_order_counts_for_sequences() -> None:
    assert ordered_difference(column(1, 2), column(1, 2)) == ""
    assert ordered_difference(column(0, 1, 2), column(0, 2, 1)).startswith(
        "same rows, other order from row 2 on\nexpected:\n  x\n  1"
    )


def test_changelogs_may_be_in_any_order_within_an_instant_only() -> None:
    assert (
        changes_difference(changelog(("+", 1, 5), ("-", 1, 6)), changelog(("-", 1, 6), ("+", 1, 5)))
        == ""
    )
    assert "order of time" in changes_difference(
        changelog(("+", 1, 5), ("-", 2, 6)), changelog(("-", 2, 6), ("+", 1, 5))
    )
    assert "missing" in changes_difference(changelog(("+", 1, 5)), changelog(("+", 2, 5)))


def test_accumulated_changes_are_the_rows_left() -> None:
    left = accumulate(changelog(("+", 1, 5), ("+", 1, 5), ("+", 2, 6), ("-", 3, 5)))
    assert difference(column(5, 6), left) == ""


def test_a_removal_of_what_is_not_there_is_refused() -> None:
    with pytest.raises(AssertionError, match="removed that is not there"):
        accumulate(changelog(("+", 1, 5), ("-", 2, 6)))


def test_assertions_fail_with_the_difference() -> None:
    assert_same_rows(column(1, 2), column(2, 1))
    assert_same_sequence(column(1, 2), column(1, 2))
    assert_same_changes(changelog(("+", 1, 5)), changelog(("+", 1, 5)))
    with pytest.raises(AssertionError, match="missing"):
        assert_same_rows(column(1), column(2))
    with pytest.raises(AssertionError, match="other order"):
        assert_same_sequence(column(1, 2), column(2, 1))
    with pytest.raises(AssertionError, match="surplus"):
        assert_same_changes(changelog(("+", 1, 5)), changelog(("+", 1, 5), ("-", 2, 5)))


def test_long_tables_are_cut() -> None:
    assert text_table(column(*range(100))).endswith("29\n  ... 70 more")
