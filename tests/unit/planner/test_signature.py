"""Which parts of a query its signature covers, and which sources correspond."""

from __future__ import annotations

from itertools import pairwise, permutations

import pytest

from muntin.model.catalog import Catalog, Table
from muntin.planner.rewrite import rewrite
from muntin.planner.signature import find_places, moved, readable, signature_of, text_of
from muntin.sql.script import read_query
from muntin.sql.streams import make_stream
from muntin.sql.types import build_schema

COLUMNS = {"k": "bigint", "j": "integer", "d": "double", "s": "varchar", "ts": "timestamp"}


def catalog() -> Catalog:
    known = Catalog()
    for name in "ABC":
        known.add(make_stream(name, build_schema(COLUMNS), "ts", 0))
    known.add(Table("T", build_schema({"k": "bigint"})))
    return known


CATALOG = catalog()


def places(one: str, other: str) -> tuple[int, ...] | None:
    """Return the places of the sources of ``other`` in ``one``; both are given from FROM on."""
    first, second = (
        signature_of(rewrite(read_query(f"SELECT 1 AS one FROM {text}", "q", CATALOG)).join)
        for text in (one, other)
    )
    found = find_places(second, first)
    if found is not None:
        assert first.key == second.key
    return found


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("A, B WHERE A.k = B.k WINDOW 1 MINUTE", "A, B WHERE A.k = B.k WINDOW 1 HOUR", (0, 1)),
        ("A, B WHERE A.k = B.k WINDOW 1 MINUTE", "B, A WHERE B.k = A.k WINDOW 1 MINUTE", (1, 0)),
        (
            "A, B WHERE A.k = B.k WINDOW 1 MINUTE",
            "B AS x JOIN A AS y ON x.k == y.k WINDOW 1 MINUTE",
            (1, 0),
        ),
        ("A, B WHERE A.k = B.k WINDOW 1 MINUTE", "a JOIN b USING (k) WINDOW 2 MINUTES", (0, 1)),
        (
            "A, B WHERE A.k = B.k AND A.j < B.j WINDOW 5 ROWS",
            "A, B WHERE (B.j > A.j) AND A.k = B.k WINDOW 7 ROWS",
            (0, 1),
        ),
        (
            "A, B WHERE A.k = B.k AND A.s = 'x' WINDOW 5 ROWS",
            "A, B WHERE A.k = B.k AND B.d > 2 WINDOW 7 ROWS",
            (0, 1),
        ),
        (
            "A, B WHERE A.k = B.k AND A.k = B.k WINDOW 5 ROWS",
            "A, B WHERE A.k = B.k WINDOW 7 ROWS",
            (0, 1),
        ),
        (
            "A, B WHERE upper(A.s) = B.s WINDOW 5 ROWS",
            "A, B WHERE B.s = UPPER( A.s ) WINDOW 7 ROWS",
            (0, 1),
        ),
        (
            "A, B WHERE A.k = B.k OR A.j is  null WINDOW 5 ROWS",
            "A, B WHERE A.k=B.k or A.j IS NULL WINDOW 7 ROWS",
            (0, 1),
        ),
        ("A, B WINDOW 5 ROWS", "B, A WINDOW 7 ROWS", (1, 0)),
        ("A, T WHERE A.k = T.k WINDOW 5 ROWS", "T, A WHERE A.k = T.k WINDOW 7 ROWS", (1, 0)),
        (
            "A [RANGE 1 MINUTE], B [ROWS 5] WHERE A.k = B.k",
            "B [ROWS 6], A [RANGE 9 MINUTES] WHERE A.k = B.k",
            (1, 0),
        ),
        (
            "A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 1 MINUTE",
            "C, A, B WHERE C.k = B.k AND A.k = C.k WINDOW 2 MINUTES",
            (2, 0, 1),
        ),
        (
            "A x, A y WHERE x.k < y.k WINDOW 5 ROWS",
            "A x, A y WHERE y.k < x.k WINDOW 5 ROWS",
            (1, 0),
        ),
        (
            "A x, A y WHERE x.k = y.k WINDOW 5 ROWS",
            "A u, A v WHERE v.k = u.k WINDOW 6 ROWS",
            (0, 1),
        ),
        (
            "A x, A y WHERE x.k = y.j WINDOW 5 ROWS",
            "A u, A v WHERE v.k = u.j WINDOW 6 ROWS",
            (1, 0),
        ),
        (
            "A x, A y, A z WHERE x.k < y.k AND y.k < z.k WINDOW 5 ROWS",
            "A x, A y, A z WHERE z.k < x.k AND y.k > x.k WINDOW 5 ROWS",
            (1, 2, 0),
        ),
    ],
)
def test_the_spelling_of_a_query_does_not_matter(
    one: str, other: str, expected: tuple[int, ...]
) -> None:
    assert places(one, other) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A, B WHERE A.k = B.k WINDOW 5 ROWS", "A, C WHERE A.k = C.k WINDOW 5 ROWS"),
        ("A, B WHERE A.k = B.k WINDOW 5 ROWS", "A, B, B b2 WHERE A.k = B.k WINDOW 5 ROWS"),
        ("A, B WHERE A.k = B.k WINDOW 5 ROWS", "A, B WHERE A.k = B.j WINDOW 5 ROWS"),
        ("A, B WHERE A.k = B.k WINDOW 5 ROWS", "A, B WHERE A.k = B.k WINDOW 5 SECONDS"),
        ("A, B WHERE A.k = B.k WINDOW 5 ROWS", "A, B WHERE A.k = B.k AND A.j < B.j WINDOW 5 ROWS"),
        ("A, B WHERE A.k < B.k WINDOW 5 ROWS", "A, B WHERE A.k > B.k WINDOW 5 ROWS"),
        ("A, B WHERE A.k < B.k WINDOW 5 ROWS", "A, B WHERE A.k <= B.k WINDOW 5 ROWS"),
        ("A, B WHERE A.s || 'X' = B.s WINDOW 5 ROWS", "A, B WHERE A.s || 'x' = B.s WINDOW 5 ROWS"),
        (
            "A, B [ROWS 5] WHERE A.k = B.k WINDOW 5 ROWS",
            "A, B [PARTITION BY k ROWS 5] WHERE A.k = B.k WINDOW 5 ROWS",
        ),
        (
            "A, B [PARTITION BY k ROWS 4] WHERE A.k = B.k WINDOW 5 ROWS",
            "A, B [PARTITION BY k ROWS 5] WHERE A.k = B.k WINDOW 5 ROWS",
        ),
        (
            "A x, A y, A z WHERE x.k < y.k AND y.k < z.k WINDOW 5 ROWS",
            "A x, A y, A z WHERE x.k < y.k AND x.k < z.k WINDOW 5 ROWS",
        ),
        (
            "A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 1 MINUTE",
            "A, B, C WHERE A.k = B.k AND B.j = C.k WINDOW 1 MINUTE",
        ),
    ],
)
def test_other_streams_conditions_or_kinds_of_windows_make_another_signature(
    one: str, other: str
) -> None:
    assert places(one, other) is None


def test_integers_that_both_equal_a_double_are_not_taken_to_equal_each_other_as_integers() -> None:
    """2^53 and 2^53 + 1 are the same double."""
    assert (
        places(
            "A, B, C WHERE A.k = B.d AND B.d = C.k WINDOW 5 ROWS",
            "A, B, C WHERE A.k = B.d AND A.k = C.k WINDOW 5 ROWS",
        )
        is None
    )


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_sources_of_a_ring_are_found_whatever_their_order(order: tuple[int, ...]) -> None:
    """All four sources look alike until one is singled out."""
    aliases = [f"r{number}" for number in order]
    ring = " AND ".join(f"r{number}.k = r{(number + 1) % 4}.j" for number in range(4))
    found = places(
        f"A r0, A r1, A r2, A r3 WHERE {ring} WINDOW 5 ROWS",
        f"{', '.join(f'A {name}' for name in aliases)} WHERE {ring} WINDOW 5 ROWS",
    )
    assert found is not None
    start = found[order.index(0)]
    assert [found[order.index(number)] for number in range(4)] == [
        (start + number) % 4 for number in range(4)
    ]


def test_sixteen_sources_that_all_look_alike_are_mapped_quickly() -> None:
    names = [f"r{number}" for number in range(16)]
    straight = " AND ".join(f"{one}.k = {other}.k" for one, other in pairwise(names))
    star = " AND ".join(f"r7.k = {other}.k" for other in names if other != "r7")
    sources = ", ".join(f"A {name}" for name in names)
    assert places(
        f"{sources} WHERE {straight} WINDOW 5 ROWS", f"{sources} WHERE {star} WINDOW 5 ROWS"
    ) == tuple(range(16))


def test_an_expression_moves_to_other_places_and_keeps_its_string_literals() -> None:
    text = """SELECT A.k FROM A, B WHERE A.s || '"0.s"' || $$ "1.s" $$ = B.s WINDOW 5 ROWS"""
    (predicate,) = read_query(text, "q", CATALOG).predicates
    there = moved(predicate.expression, (1, 0))
    assert there.sql == """"1.s" || '"0.s"' || $$ "1.s" $$ = "0.s\""""
    assert [reference.flat for reference in there.references] == ["1.s", "0.s"]
    assert readable(there, ["x", "y"]) == """y.s || '"0.s"' || $$ "1.s" $$ = x.s"""
    assert text_of(there).show(["x", "y"]) == """y."s" || '"0.s"' || $$ "1.s" $$ = x."s\""""
