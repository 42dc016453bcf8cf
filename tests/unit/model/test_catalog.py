from __future__ import annotations

import pyarrow as pa
import pytest

from muntin.errors import CatalogError
from muntin.model.catalog import Catalog, Stream, Table

SCHEMA = pa.schema([("Key", pa.int64()), ("ts", pa.timestamp("us"))])


@pytest.fixture
def catalog() -> Catalog:
    catalog = Catalog()
    for name in ("Zeta", "Alpha"):
        catalog.add(Stream(name, SCHEMA, "ts"))
    catalog.add(Table("Straße", SCHEMA))
    return catalog


def test_names_ignore_case_and_stay_as_declared(catalog: Catalog) -> None:
    for spelling in ("zeta", "ZETA"):
        found = catalog.find(spelling)
        assert found is not None
        assert found.name == "Zeta"
    assert isinstance(catalog.find("STRASSE"), Table)
    assert catalog.find("nosuch") is None


def test_streams_keep_the_order_of_declaration(catalog: Catalog) -> None:
    assert [(stream.name, stream.order) for stream in catalog.streams()] == [
        ("Zeta", 0),
        ("Alpha", 1),
    ]
    assert [table.name for table in catalog.tables()] == ["Straße"]
    catalog.remove("zeta")
    added = catalog.add(Stream("Zeta", SCHEMA, "ts"))
    assert isinstance(added, Stream)
    assert added.order == 2
    assert [stream.name for stream in catalog.streams()] == ["Alpha", "Zeta"]


@pytest.mark.parametrize(
    ("name", "message"),
    [("ALPHA", "there is already a stream Alpha"), ("strasse", "there is already a table Straße")],
)
def test_a_name_is_given_once(catalog: Catalog, name: str, message: str) -> None:
    for relation in (Stream(name, SCHEMA, "ts"), Table(name, SCHEMA)):
        with pytest.raises(
            CatalogError, match=rf"{message}\. Choose another name, or drop it first"
        ):
            catalog.add(relation)
    assert len(catalog.streams()) + len(catalog.tables()) == 3


def test_columns_are_found_in_any_case() -> None:
    assert Stream("A", SCHEMA, "ts").column("KEY") == "Key"
    assert Table("T", SCHEMA).column("key") == "Key"
    assert Table("T", SCHEMA).column("nosuch") is None
