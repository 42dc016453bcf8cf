from __future__ import annotations

import pytest

from muntin.sql.equivalence import meaning, without_windows

PLAIN = "SELECT v , 'a (b' AS \"x)\" FROM A [ RANGE 1 MINUTE ] EMIT CHANGES"


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        "SELECT v, 'a (b' AS \"x)\"\n  FROM A [RANGE 1 MINUTE] -- newest\nEMIT CHANGES;",
        (
            "SELECT v, 'a (b' AS \"x)\" FROM A [RANGE 1 MINUTE] "
            "WITH (sink = 'parquet', path = 'out(1)') EMIT CHANGES"
        ),
        (
            "SELECT v, /* ( */ 'a (b' AS \"x)\" FROM A [RANGE 1 MINUTE] EMIT CHANGES "
            "WITH (expiry = 'lazy')"
        ),
    ],
)
def test_layout_and_options_are_not_part_of_the_meaning_of_a_query(text: str) -> None:
    assert meaning(text) == PLAIN


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace("1 MINUTE", "2 MINUTE"),
        PLAIN.replace("a (b", "a  (b"),
        PLAIN.replace("CHANGES", "INSERTS"),
        PLAIN.replace("v ,", "V ,"),
    ],
)
def test_everything_else_is_part_of_the_meaning_of_a_query(text: str) -> None:
    assert meaning(text) != PLAIN


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("SELECT v FROM A [RANGE 1 MINUTE]", "SELECT v FROM A"),
        ("SELECT v FROM A a [PARTITION BY k, j ROWS 2], B", "SELECT v FROM A a , B"),
        ("SELECT v FROM A WINDOW 1 HOUR 3 MINUTES EVERY 5 ROWS", "SELECT v FROM A EVERY 5 ROWS"),
        ("SELECT v FROM A WINDOW 5 ROWS WITH (a = 'b') EVERY 1 DAY", "SELECT v FROM A EVERY 1 DAY"),
        ("SELECT [v, 1][2] AS w FROM A WINDOW '1 minute'", "SELECT [ v , 1 ] [ 2 ] AS w FROM A"),
        ("SELECT 'WINDOW [ROWS 1]' AS w FROM A", "SELECT 'WINDOW [ROWS 1]' AS w FROM A"),
    ],
)
def test_a_query_without_its_windows_keeps_everything_else(text: str, rest: str) -> None:
    assert without_windows(text) == rest
