"""No spelling of a forbidden function gets past the binder, in any place of a query."""

from __future__ import annotations

import pytest

from muntin.errors import SqlError
from muntin.expressions.allowed import is_allowed
from muntin.model.catalog import Catalog
from muntin.sql.probe import ask
from muntin.sql.script import read_query
from muntin.sql.streams import make_stream
from muntin.sql.types import build_schema
from tests.unit.expressions.forbidden import FORBIDDEN


@pytest.fixture(name="catalog")
def make_catalog() -> Catalog:
    catalog = Catalog()
    catalog.add(
        make_stream(
            "A", build_schema({"k": "bigint", "s": "varchar", "l": "bigint[]", "ts": "timestamp"})
        )
    )
    return catalog


PLACES = [
    "SELECT {} AS x FROM A WINDOW 1 MINUTE",
    "SELECT k FROM A WHERE {} IS NULL WINDOW 1 MINUTE",
    "SELECT a.k FROM A a JOIN A b ON a.k = b.k AND {} IS NULL WINDOW 1 MINUTE",
    "SELECT count(*) AS n FROM A GROUP BY {} WINDOW 1 MINUTE",
    "SELECT k FROM A GROUP BY k HAVING {} IS NULL WINDOW 1 MINUTE",
    "SELECT max({}) AS x FROM A WINDOW 1 MINUTE",
    "SELECT count(*) FILTER (WHERE {} IS NULL) AS x FROM A WINDOW 1 MINUTE",
    "SELECT k FROM A UNION ALL SELECT {} AS x FROM A WINDOW 1 MINUTE",
    "SELECT x FROM (SELECT {} AS x FROM A) AS inner_ WINDOW 1 MINUTE",
]


@pytest.mark.parametrize("place", PLACES)
def test_no_spelling_gets_past_the_check(catalog: Catalog, place: str) -> None:
    assert [call for call in FORBIDDEN if not _is_refused(place.format(call), catalog)] == []


def _is_refused(query: str, catalog: Catalog) -> bool:
    try:
        read_query(query, "q", catalog)
    except SqlError as error:
        return bool(error.hint)
    return False


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "call",
    [
        "random\ufeff()",
        "now\ufeff()",
        "current_setting\ufeff('threads')",
        "coalesce(NULL, (\ufeffFROM\ufeffquery('SELECT 1')))",
    ],
)
def test_a_byte_order_mark_hides_nothing(catalog: Catalog, call: str, place: str) -> None:
    with pytest.raises(SqlError, match=r"an invisible character \(U\+FEFF"):
        read_query(place.format(call), "q", catalog)


def test_every_function_that_is_not_allowed_is_refused_in_a_query(catalog: Catalog) -> None:
    rows = ask(
        "SELECT DISTINCT function_name AS name, len(parameters) AS n FROM duckdb_functions() "
        "WHERE NOT contains(function_name, '#')"  # Python functions of other tests
    ).to_pylist()
    refused = [(row["name"], row["n"]) for row in rows if not is_allowed(row["name"], row["n"])]
    assert len(refused) > 500
    query = 'SELECT k FROM A WHERE "{}"({}) = 1 WINDOW 1 MINUTE'
    assert [
        call
        for call in refused
        if not _is_refused(query.format(call[0], ", ".join(["k"] * call[1])), catalog)
    ] == []
