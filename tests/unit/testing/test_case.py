from __future__ import annotations

from muntin.sql.script import read_query
from muntin.testing.case import Case, Event, StoredTable
from muntin.testing.golden import StreamDeclaration

SECOND = 1_000_000

CASE = Case(
    streams=(
        StreamDeclaration(
            "A", (("k", "INTEGER"), ("s", "VARCHAR"), ("ts", "TIMESTAMP")), "ts", 2 * SECOND
        ),
        StreamDeclaration("B", (("k", "DOUBLE"), ("ts", "TIMESTAMP"))),
    ),
    tables=(StoredTable("T", (("k", "INTEGER"),), ((1,), (None,))),),
    query="SELECT a.s, b.k FROM A a, B b, T WHERE a.k = b.k AND b.k = T.k WINDOW 5 SECONDS",
    events=(
        Event("A", 2 * SECOND, (1, "x y")),
        Event("B", 3 * SECOND, (1.0,)),
        Event("A", 1 * SECOND, (1, None)),
        Event("B", 3_500_000, (None,)),
    ),
    cuts=(1, 3),
)

SCRIPT = """\
# about: an example
stream A (k INTEGER, s VARCHAR, ts TIMESTAMP) slack 2
stream B (k DOUBLE, ts TIMESTAMP)
table T (k INTEGER)
1
NULL
query q: SELECT a.s, b.k FROM A a, B b, T WHERE a.k = b.k AND b.k = T.k WINDOW 5 SECONDS
feed A
2  1 'x y'
feed A
1  1 NULL
feed B
3  1.0
feed B
3.5  NULL
advance 3.5
out q
+ 3  'x y' 1.0
+ 3  NULL 1.0
answer q
'x y' 1.0
NULL 1.0
"""


def test_a_case_prints_itself_as_a_golden_script() -> None:
    query = read_query(CASE.query, "q", CASE.catalog())
    assert CASE.script(query, "an example") == SCRIPT


def test_rows_are_given_in_order_of_arrival_and_cut_into_batches() -> None:
    assert CASE.rows()["A"].column("s").to_pylist() == ["x y", None]
    assert CASE.stored()["T"].column("k").to_pylist() == [1, None]
    assert [(name, rows.num_rows) for name, rows in CASE.batches()] == [
        ("A", 1),
        ("A", 1),
        ("B", 1),
        ("B", 1),
    ]
    assert CASE.end == 3_500_000
    assert (
        CASE.declarations[1] == """CREATE STREAM "B" (k DOUBLE, ts TIMESTAMP) WITH (time = 'ts')"""
    )
