"""Binding takes time in proportion to the length of the text."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from muntin.model.catalog import Catalog
from muntin.sql.script import read_query, read_script
from muntin.sql.streams import make_stream
from muntin.sql.types import build_schema

SMALL = 600
FACTOR = 4


def make_catalog(columns: int) -> Catalog:
    catalog = Catalog()
    schema = {
        "k": "bigint",
        "ts": "timestamp",
        **{f"c{number}": "bigint" for number in range(columns)},
    }
    catalog.add(make_stream("A", build_schema(schema)))
    catalog.add(make_stream("B", build_schema({"k": "bigint", "ts": "timestamp"})))
    return catalog


def _listed(pattern: str, between: str, count: int) -> str:
    return between.join(pattern.format(number) for number in range(count))


TEXTS: dict[str, Callable[[int], str]] = {
    "conjuncts": lambda count: (
        f"SELECT k FROM A WHERE {_listed('k <> {}', ' AND ', count)} WINDOW 1 MINUTE"
    ),
    "expressions": lambda count: (
        f"SELECT {_listed('k + {0} AS d{0}', ', ', count)} FROM A WINDOW 1 MINUTE"
    ),
    "columns": lambda count: f"SELECT {_listed('c{}', ', ', count)} FROM A WINDOW 1 MINUTE",
    "aggregates": lambda count: (
        f"SELECT {_listed('sum(c{0}) AS s{0}', ', ', count)} FROM A WINDOW 1 MINUTE"
    ),
    "groups": lambda count: (
        "SELECT k, count(*) AS n FROM A GROUP BY k "
        f"HAVING {_listed('k <> {}', ' AND ', count)} WINDOW 1 MINUTE"
    ),
    "unions": lambda count: f"{_listed('SELECT k FROM B', ' UNION ALL ', count)} WINDOW 1 MINUTE",
}


def _best(work: Callable[[], object], runs: int) -> float:
    """Return the least CPU time that the work took; other processes do not count."""
    taken = []
    for _ in range(runs):
        begin = time.process_time()
        work()
        taken.append(time.process_time() - begin)
    return min(taken)


@pytest.mark.parametrize("kind", TEXTS)
def test_four_times_the_text_takes_at_most_about_four_times_as_long(kind: str) -> None:
    write = TEXTS[kind]
    catalogs = {count: make_catalog(count) for count in (SMALL, SMALL * FACTOR)}
    read_query(write(10), "q", catalogs[SMALL])
    small, large = (
        _best(
            lambda n=count: read_query(write(n), "q", catalogs[n]),  # type: ignore[misc]
            5,
        )
        for count in catalogs
    )
    assert large < 1.75 * FACTOR * small


def test_declarations_are_read_in_linear_time() -> None:
    def declare(count: int) -> object:
        return list(
            read_script(
                f"CREATE STREAM S (ts TIMESTAMP, {_listed('c{} BIGINT', ', ', count)})", Catalog()
            )
        )

    declare(10)
    small, large = _best(lambda: declare(1_000), 5), _best(lambda: declare(1_000 * FACTOR), 3)
    assert large < 1.75 * FACTOR * small
