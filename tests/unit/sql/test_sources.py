from __future__ import annotations

import pytest

from muntin.errors import SqlError
from muntin.model.catalog import Catalog
from muntin.model.window import PartitionedWindow, RowsWindow, TimeWindow, Unbounded
from muntin.sql.script import read_query

MINUTE = 60_000_000


def test_every_entry_gets_its_window(catalog: Catalog) -> None:
    query = read_query(
        "SELECT 1 FROM temperature A [RANGE 10 MINUTES], Humidity [ROWS 5] B, Reading "
        "[PARTITION BY K, n ROWS 3], "
        "Temperature C, favorites F WINDOW 1 MINUTE",
        "q",
        catalog,
    )
    assert [
        (source.alias, source.relation, source.stored, source.window) for source in query.sources
    ] == [
        ("A", "Temperature", False, TimeWindow(10 * MINUTE)),
        ("B", "Humidity", False, RowsWindow(5)),
        ("Reading", "Reading", False, PartitionedWindow(("k", "n"), 3)),
        ("C", "Temperature", False, TimeWindow(MINUTE)),
        ("F", "Favorites", True, Unbounded()),
    ]
    assert query.sources[0].schema.names == ["LocationId", "Value", "ts"]


@pytest.mark.parametrize(
    ("query", "freshness"),
    [
        (
            "FROM Temperature A, Humidity B WINDOW 1 MINUTE FRESHNESS 2 MINUTES",
            ((0, TimeWindow(2 * MINUTE)), (1, TimeWindow(2 * MINUTE))),
        ),
        (
            "FROM Favorites, Humidity B WINDOW 1 MINUTE FRESHNESS 1 MINUTE",
            ((1, TimeWindow(MINUTE)),),
        ),
        (
            (
                "FROM Temperature A [ROWS 5], Humidity B FRESHNESS b 2 MINUTES, A 7 ROWS "
                "WINDOW 1 MINUTE"
            ),
            ((0, RowsWindow(7)), (1, TimeWindow(2 * MINUTE))),
        ),
        (
            "FROM Reading [PARTITION BY k ROWS 5] FRESHNESS 6 ROWS",
            ((0, PartitionedWindow(("k",), 6)),),
        ),
    ],
)
def test_freshness(catalog: Catalog, query: str, freshness: object) -> None:
    assert read_query(f"SELECT 1 {query}", "q", catalog).freshness == freshness


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "FROM Temprature",
            (
                "column 15: there is no stream or table 'Temprature'. Did you mean "
                "'Temperature'? There are Temperature, Humidity"
            ),
        ),
        (
            "FROM Reading A",
            (
                "column 15: stream Reading has no window. Write Reading [RANGE 1 MINUTE] or "
                "Reading [ROWS 100], or end the query with WINDOW"
            ),
        ),
        (
            "FROM Favorites [ROWS 5], Temperature WINDOW 1 ROW",
            "column 25: table Favorites cannot have a window. Remove the brackets",
        ),
        (
            "FROM Favorites WINDOW 1 ROW",
            (
                "column 15: the query reads no stream. Stored tables do not change; join them "
                "with a stream"
            ),
        ),
        (
            "FROM Temperature A, Humidity a WINDOW 1 ROW",
            "column 30: FROM has two entries named a. Give one of them another alias",
        ),
        (
            "FROM Temperature, temperature WINDOW 1 ROW",
            "column 28: FROM has two entries named Temperature.",
        ),
        (
            "FROM " + ", ".join(f"Temperature t{place}" for place in range(17)) + " WINDOW 1 ROW",
            "column 277: FROM has more than 16 entries.",
        ),
        (
            "FROM Reading [PARTITION BY x ROWS 1]",
            "column 37: stream Reading has no column 'x'. It has k, n, l, s, d, t",
        ),
        (
            "FROM Reading [PARTITION BY k, K ROWS 1]",
            "column 40: the window is partitioned by k twice.",
        ),
        ("FROM Reading [ROWS 0]", "column 29: a window must hold at least one row, not 0."),
        (
            "FROM '/etc/passwd' WINDOW 1 ROW",
            "column 15: FROM cannot read files. Declare the file with CREATE TABLE",
        ),
        ("FROM main.Temperature WINDOW 1 ROW", "column 15: main is a schema, and Muntin has none."),
        ("FROM mine(1) WINDOW 1 ROW", "column 15: FROM cannot call the function mine."),
        (
            "FROM (Temperature A JOIN Humidity B ON TRUE) WINDOW 1 ROW",
            "column 15: parentheses in FROM are not supported.",
        ),
        (
            "FROM Temperature A (x, y) WINDOW 1 ROW",
            "column 29: unexpected '('. An entry of FROM is a name",
        ),
        (
            "FROM Temperature A JOIN Humidity B WINDOW 1 ROW",
            "column 34: the JOIN of Humidity has no condition. Add ON condition",
        ),
        (
            "FROM Temperature A CROSS JOIN Humidity B ON TRUE WINDOW 1 ROW",
            "column 54: a condition needs a JOIN before Humidity.",
        ),
        (
            "FROM Temperature WINDOW 1 MINUTE FRESHNESS 59 SECONDS",
            "column 53: the freshness [RANGE 59 seconds] of stream Temperature is smaller",
        ),
        (
            "FROM Temperature A [ROWS 5] FRESHNESS A 4 ROWS",
            "column 50: the freshness [ROWS 4] of stream Temperature A is smaller",
        ),
        (
            "FROM Temperature A [ROWS 5] FRESHNESS A 4 HOURS",
            (
                "column 50: the window of stream Temperature A is [ROWS 5], so its freshness "
                "must be a number of rows."
            ),
        ),
        (
            "FROM Temperature A [ROWS 5] FRESHNESS B 4 ROWS",
            "column 48: there is no 'B' in FROM. FROM has A",
        ),
        (
            "FROM Temperature A [ROWS 5] FRESHNESS A 6 ROWS, a 7 ROWS",
            "column 58: the freshness of a is given twice.",
        ),
        (
            "FROM Temperature A, Favorites F FRESHNESS F 6 ROWS WINDOW 1 ROW",
            "column 52: table Favorites F has no freshness.",
        ),
    ],
)
def test_invalid_entries_are_refused(catalog: Catalog, query: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        read_query(f"SELECT 1 {query}", "q", catalog)
    assert str(caught.value).startswith(f"query q, line 1, {message}")


def test_an_empty_catalog_is_reported_with_the_remedy() -> None:
    with pytest.raises(
        SqlError,
        match=r"there is no stream or table 'A'\. Declare it with CREATE STREAM or CREATE TABLE",
    ):
        read_query("SELECT 1 FROM A WINDOW 1 ROW", "q", Catalog())
