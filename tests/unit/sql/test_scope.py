from __future__ import annotations

import pytest

from muntin.errors import SqlError
from muntin.model.catalog import Catalog
from muntin.sql.script import read_query
from muntin.sql.streams import make_stream
from muntin.sql.types import build_schema


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT A.Value, b.VALUE FROM Temperature A, Humidity B", '"0.Value" "1.Value"'),
        ("SELECT LOCATIONID FROM Temperature", '"0.LocationId"'),
        ("SELECT temperature.ts FROM Temperature", '"0.ts"'),
        ("SELECT k, Label, Favorites.ItemID FROM Favorites, Reading", '"1.k" "0.Label" "0.ItemID"'),
        ('SELECT "x y".Value FROM Temperature AS "x y"', '"0.Value"'),
        ("SELECT s.a FROM Reading s", '("0.s").a'),
        ("SELECT k FROM Reading s WHERE s.s.a = 1", '"0.k"'),
        (
            "SELECT locationid, B.locationid FROM Temperature A JOIN Humidity B USING (LocationId)",
            '"0.LocationId" "1.LocationId"',
        ),
    ],
)
def test_names_find_their_columns(catalog: Catalog, query: str, columns: str) -> None:
    bound = read_query(f"{query} WINDOW 1 MINUTE", "q", catalog)
    assert " ".join(column.expression.sql for column in bound.select) == columns


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "SELECT 1\nFROM Temperature A\nWHERE A.Vale > 1",
            (
                "query q, line 3, column 9: stream Temperature A has no column 'Vale'. Did you "
                "mean 'Value'? It has LocationId, Value, ts"
            ),
        ),
        (
            "SELECT Favorites.Lable FROM Favorites, Reading",
            (
                "query q, line 1, column 18: table Favorites has no column 'Lable'. Did you "
                "mean 'Label'? It has ItemID, Label"
            ),
        ),
        (
            "SELECT 1 + vlue FROM Humidity",
            (
                "query q, line 1, column 12: stream Humidity has no column 'vlue'. Did you mean "
                "'Value'? The columns are LocationId, Value, ts"
            ),
        ),
        (
            "SELECT zzz FROM Reading, Favorites F",
            (
                "query q, line 1, column 8: stream Reading, table Favorites F has no column "
                "'zzz'. The columns are k, n, l, s, d, t, ItemID"
            ),
        ),
        (
            "SELECT Value FROM Temperature A, Humidity",
            (
                "query q, line 1, column 8: the column 'Value' is ambiguous. Write A.Value or "
                "Humidity.Value"
            ),
        ),
        (
            "SELECT Temperature.Value FROM Temperature A",
            "query q, line 1, column 8: Temperature goes by the name A here. Write A.Value",
        ),
        (
            "SELECT C.Value FROM Temperature A",
            "query q, line 1, column 8: there is no 'C' in FROM. FROM has A",
        ),
        (
            "SELECT sensr.Value FROM Temperature sensor",
            (
                "query q, line 1, column 8: there is no 'sensr' in FROM. Did you mean 'sensor'? "
                "FROM has sensor"
            ),
        ),
        (
            "SELECT Value + 1 AS more FROM Temperature WHERE more > 3",
            (
                "query q, line 1, column 49: there is no column 'more' in FROM. more is a name "
                "of the select list; write the expression itself"
            ),
        ),
        (
            "SELECT 1 FROM Temperature A JOIN Humidity B ON A.ts = C.ts JOIN Reading C ON TRUE",
            (
                "query q, line 1, column 55: C comes only later in FROM. Move the condition to "
                "WHERE or to the ON of C"
            ),
        ),
        (
            "SELECT 1 FROM Temperature A JOIN Reading B USING (LocationId)",
            (
                "query q, line 1, column 51: stream Reading B has no column 'LocationId'. It "
                "has k, n, l, s, d, t"
            ),
        ),
        (
            "SELECT 1 FROM Temperature A CROSS JOIN Humidity B JOIN Temperature C USING (Value)",
            "query q, line 1, column 77: the column 'Value' is ambiguous. Write A.Value or B.Value",
        ),
    ],
)
def test_unknown_and_ambiguous_names_are_refused(
    catalog: Catalog, query: str, message: str
) -> None:
    with pytest.raises(SqlError) as caught:
        read_query(f"{query} WINDOW 1 MINUTE", "q", catalog)
    assert str(caught.value).startswith(message)


def test_on_prefers_the_entries_since_the_last_comma(catalog: Catalog) -> None:
    query = read_query(
        "SELECT 1 FROM Temperature A, Humidity B JOIN Reading C ON Value = k WINDOW 1 MINUTE",
        "q",
        catalog,
    )
    assert query.join.on[0].expression.sql == '"1.Value" = "2.k"'


def test_many_columns_are_not_all_listed(catalog: Catalog) -> None:

    catalog.add(
        make_stream(
            "Wide", build_schema({f"c{place}": "int" for place in range(50)} | {"ts": "timestamp"})
        )
    )
    with pytest.raises(SqlError, match=r"c29 and 21 more$"):
        read_query("SELECT Wide.zzz FROM Wide WINDOW 1 ROWS", "q", catalog)
