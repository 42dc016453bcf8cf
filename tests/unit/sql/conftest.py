from __future__ import annotations

import pytest

from muntin.model.catalog import Catalog
from muntin.sql.streams import make_stream, make_table
from muntin.sql.types import build_schema

SENSOR = {"LocationId": "INT", "Value": "DOUBLE", "ts": "TIMESTAMP"}
READING = {
    "k": "BIGINT",
    "n": "VARCHAR",
    "l": "INTEGER[]",
    "s": "STRUCT(a INT, b VARCHAR)",
    "d": "DECIMAL(10, 2)",
    "t": "TIMESTAMP",
}


@pytest.fixture
def catalog() -> Catalog:
    """Return a catalog of streams Temperature, Humidity and Reading, and table Favorites."""
    catalog = Catalog()
    catalog.add(make_stream("Temperature", build_schema(SENSOR)))
    catalog.add(make_stream("Humidity", build_schema(SENSOR)))
    catalog.add(make_stream("Reading", build_schema(READING)))
    catalog.add(make_table("Favorites", build_schema({"ItemID": "INT", "Label": "VARCHAR"})))
    return catalog
