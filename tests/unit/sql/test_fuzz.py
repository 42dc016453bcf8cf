"""Any text leads only to Muntin's errors, which have a hint and a place inside the text."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muntin.errors import MuntinError, SqlError
from muntin.model.catalog import Catalog
from muntin.sql.script import read_query, read_script

QUERY_TEXT = """
SELECT A.Value + 1 AS v , n FROM Temperature A [ RANGE 1 MINUTE ]
JOIN Reading B [ PARTITION BY k ROWS 5 ] ON A.LocationId = k
AND ( A.Value > 3 OR n IS NULL ) WHERE A.Value BETWEEN 1 AND 2 AND lower( n ) = 'x'
WINDOW 1 MINUTE EVERY 5 SECONDS EMIT CHANGES FRESHNESS A 2 MINUTES WITH ( sink = 'x' )
"""
SCRIPT_TEXT = """
CREATE STREAM x ( a INT , b TIMESTAMP ) WITH ( time = 'b' , slack = '1s' ) ;
CREATE TABLE y ( a INT [ ] ) ; DROP QUERY IF EXISTS z ;
SET a = 5 ; CREATE QUERY q AS SELECT Value FROM Temperature WINDOW 5 ROWS
"""
NOISE_TEXT = r"""
NOT OR IN LIKE CASE WHEN THEN ELSE END DISTINCT GROUP ORDER BY LIMIT UNION VALUES CAST( DATE
EXTRACT( YEAR INTERVAL ? $1 # @ ~ ! % ^ **
// -> ->> :: : := . { } < <> - * /* */ -- ' " $$ "q" 0 1.5 e'\n' b'01'
COLUMNS( OVER FILTER QUALIFY PIVOT LATERAL UNNEST( ANY ALL ü 日 😀
count( now() lambda FOR IF USING CROSS LEFT ESCAPE COLLATE GLOB
ISNULL EXCLUDE REPLACE SHOW DESCRIBE EXPLAIN FROM SELECT A B n l s.a
"""
QUERY, SCRIPT = QUERY_TEXT.split(), SCRIPT_TEXT.split()
NOISE = [*QUERY, *SCRIPT, *NOISE_TEXT.split(), "\0", "\ud800", "\n"]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    tokens = list(draw(st.sampled_from([QUERY, SCRIPT, []])))
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(tokens)))
        removed = draw(st.integers(0, 2))
        tokens[place : place + removed] = draw(st.lists(st.sampled_from(NOISE), max_size=3))
    return draw(st.sampled_from([" ", "\n", ""] if draw(st.booleans()) else [" "])).join(tokens)


def check(text: str, error: MuntinError) -> None:
    assert str(error)
    if isinstance(error, SqlError):
        lines = text.split("\n")
        assert 1 <= error.place.line <= len(lines)
        assert 1 <= error.place.column <= len(lines[error.place.line - 1]) + 1


@pytest.mark.parametrize("base", [QUERY, SCRIPT])
def test_the_texts_to_mutate_are_valid(catalog: Catalog, base: list[str]) -> None:
    text = " ".join(base)
    assert read_query(text, "q", catalog) if base is QUERY else list(read_script(text, catalog))


@given(
    st.one_of(
        mutated(), st.lists(st.sampled_from(NOISE), max_size=20).map(" ".join), st.text(max_size=30)
    )
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_only_our_errors_are_raised(catalog: Catalog, text: str) -> None:
    try:
        list(read_script(text, catalog))
    except MuntinError as error:
        check(text, error)
    try:
        read_query(text, "q", catalog)
    except MuntinError as error:
        check(text, error)
