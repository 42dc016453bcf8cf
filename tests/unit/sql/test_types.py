from __future__ import annotations

import pyarrow as pa
import pytest

from muntin.errors import InputError
from muntin.sql.types import arrow_type, build_schema


@pytest.mark.parametrize(
    ("sql", "arrow"),
    [
        ("bigint", pa.int64()),
        ("INT", pa.int32()),
        ("utinyint", pa.uint8()),
        ("double precision", pa.float64()),
        ("varchar(10)", pa.string()),
        ("boolean", pa.bool_()),
        ("date", pa.date32()),
        ("timestamp", pa.timestamp("us")),
        ("timestamp_ms", pa.timestamp("ms")),
        ("timestamp with time zone", pa.timestamp("us", tz="UTC")),
        ("decimal(10, 2)", pa.decimal128(10, 2)),
        ("blob", pa.binary()),
        ('struct(a int, "b c" varchar)', pa.struct([("a", pa.int32()), ("b c", pa.string())])),
    ],
)
def test_types_are_those_of_duckdb(sql: str, arrow: pa.DataType) -> None:
    assert arrow_type(sql) == arrow


def test_nested_and_enumerated_types() -> None:
    assert pa.types.is_list(arrow_type("integer[]"))
    assert pa.types.is_dictionary(arrow_type("enum('a', 'b')"))


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "  ",
        "foo",
        "int)",
        "int) AS x, (1",
        "(int",
        "int; drop",
        "int 'x'",
        "'int'",
        "1",
        "int + 1",
        "decimal((select 1))",
        "'",
    ],
)
def test_unknown_types_are_refused(sql: str) -> None:
    with pytest.raises(InputError) as caught:
        arrow_type(sql)
    assert str(caught.value).startswith(f"{sql!r} is not a type. ")
    assert "BIGINT" in caught.value.hint


def test_a_near_type_is_suggested() -> None:
    with pytest.raises(InputError, match='Did you mean "integer"'):
        arrow_type("intger")


def test_constraints_are_refused() -> None:
    with pytest.raises(
        InputError,
        match=r"not in 'int not null' is not part of a type\. Columns have a name and a type only",
    ):
        arrow_type("int not null")


def test_a_schema_keeps_order_and_spelling() -> None:
    schema = build_schema({"LocationId": "int", "größe": "double", "a b": "text"})
    assert schema.names == ["LocationId", "größe", "a b"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, "there are no columns. Declare at least one"),
        (
            {"a": "int", "A": "int"},
            "the columns 'a' and 'A' have the same name. Names ignore case; rename one of them",
        ),
        (
            {"_op": "int"},
            (
                "a column cannot be called '_op'. Results use _op and _ts themselves; choose "
                "another name"
            ),
        ),
        (
            {"_TS": "int"},
            (
                "a column cannot be called '_TS'. Results use _op and _ts themselves; choose "
                "another name"
            ),
        ),
        ({"": "int"}, "a column has an empty name. Give every column a name"),
    ],
)
def test_invalid_schemas_are_refused(columns: dict[str, str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        build_schema(columns)
    assert str(caught.value) == message


def test_names_that_only_begin_like_reserved_ones_are_allowed() -> None:
    assert build_schema({"_op_code": "int", "_ts2": "int"}).names == ["_op_code", "_ts2"]
