from __future__ import annotations

import pyarrow as pa
import pytest

from muntin.errors import InputError
from muntin.model.catalog import Catalog, Stream
from muntin.model.statistics import StreamStatistics, declared_statistics, known_statistics

SCHEMA = pa.schema([("ts", pa.timestamp("us"))])


def test_statistics_are_known_where_both_numbers_are_declared() -> None:
    catalog = Catalog()
    catalog.add(Stream("A", SCHEMA, "ts", options=(("RATE", "2.5"), ("distinct", "1"))))
    catalog.add(Stream("B", SCHEMA, "ts", options=(("rate", "2.5"),)))
    catalog.add(Stream("C", SCHEMA, "ts"))
    assert known_statistics(catalog) == {"A": StreamStatistics(2.5, 1.0)}


@pytest.mark.parametrize(
    ("rate", "distinct", "named"),
    [
        ("0", "5", "rate"),
        ("-1", "5", "rate"),
        ("fast", "5", "rate"),
        ("nan", "5", "rate"),
        ("inf", "5", "rate"),
        ("1", "0.5", "distinct"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(rate: str, distinct: str, named: str) -> None:
    with pytest.raises(
        InputError,
        match=(
            rf"{named} cannot be '{rate if named == 'rate' else distinct}'\. rate is rows per "
            r"second"
        ),
    ):
        declared_statistics((("rate", rate), ("distinct", distinct)))
