from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from muntin.model.catalog import Catalog
from muntin.plan.query import Query
from muntin.sql.script import read_query
from muntin.sql.streams import make_stream, make_table
from muntin.sql.types import build_schema

Bind: TypeAlias = Callable[[str], Query]

SENSOR = {"LocationId": "INT", "Value": "DOUBLE", "ts": "TIMESTAMP"}
READING = {"k": "BIGINT", "n": "VARCHAR", "l": "INTEGER[]", "s": "STRUCT(a INT, b VARCHAR)", "d": "DECIMAL(10, 2)", "at": "TIMESTAMP"}


@pytest.fixture
def catalog() -> Catalog:
    """Streams Temperature, Humidity and Reading, table Favorites."""
    catalog = Catalog()
    catalog.add(make_stream("Temperature", build_schema(SENSOR)))
    catalog.add(make_stream("Humidity", build_schema(SENSOR)))
    catalog.add(make_stream("Reading", build_schema(READING)))
    catalog.add(make_table("Favorites", build_schema({"ItemID": "INT", "Label": "VARCHAR"})))
    return catalog


@pytest.fixture
def bind(catalog: Catalog) -> Bind:
    """Binds one query under the name q."""
    return lambda text: read_query(text, "q", catalog)
