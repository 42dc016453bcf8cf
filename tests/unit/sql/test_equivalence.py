from __future__ import annotations

import pytest

from muntin.sql.equivalence import meaning

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
