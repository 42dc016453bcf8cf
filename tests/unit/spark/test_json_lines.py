"""Values of every type as JSON: exact, and the same for every reader."""

from __future__ import annotations

import io
import json
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from muntin.spark.json_lines import write_json

NAN, INF = float("nan"), float("inf")


def text_of(rows: pa.Table) -> str:
    file = io.BytesIO()
    write_json(rows, file)
    return file.getvalue().decode()


@pytest.mark.parametrize(
    ("values", "kind", "texts"),
    [
        ([2**63 - 1, -(2**63)], pa.int64(), ["9223372036854775807", "-9223372036854775808"]),
        ([2**64 - 1, None], pa.uint64(), ["18446744073709551615", "null"]),
        (
            [0.1, 1e300, NAN, INF, -INF, None],
            pa.float64(),
            ["0.1", "1e300", '"NaN"', '"Infinity"', '"-Infinity"', "null"],
        ),
        ([0.5, NAN], pa.float32(), ["0.5", '"NaN"']),
        (
            [Decimal("9999999999999999.99"), Decimal("-0.10")],
            pa.decimal128(18, 2),
            ["9999999999999999.99", "-0.10"],
        ),
        ([Decimal(10**37 + 1)], pa.decimal128(38, 0), ["10000000000000000000000000000000000001"]),
        ([True, False, None], pa.bool_(), ["true", "false", "null"]),
        (
            ['say "hi"\n', "", "ü\u2028\x00", None],
            pa.string(),
            [r'"say \"hi\"\n"', '""', '"ü\u2028\\u0000"', "null"],
        ),
        (["a"], pa.large_string(), ['"a"']),
        ([b"\x00\xff", b"", None], pa.binary(), ['"AP8="', '""', "null"]),
        ([date(1, 1, 1), date(9999, 12, 31)], pa.date32(), ['"0001-01-01"', '"9999-12-31"']),
        (
            [86_400_000_006, 86_400_000_000],
            pa.timestamp("us"),
            ['"1970-01-02 00:00:00.000006"', '"1970-01-02 00:00:00"'],
        ),
        ([1], pa.timestamp("us", "UTC"), ['"1970-01-01 00:00:00.000001+00"']),
        ([time(1, 2, 3, 4)], pa.time64("us"), ['"01:02:03.000004"']),
        ([timedelta(days=1, seconds=2)], pa.duration("us"), ['"24:00:02"']),
        ([[1.5, NAN, None], [], None], pa.list_(pa.float64()), ['[1.5,"NaN",null]', "[]", "null"]),
        ([[[b"\x01"], None]], pa.list_(pa.list_(pa.binary())), ['[["AQ=="],null]']),
        (
            [{"a'b": Decimal("1.10"), "l": [{"x": 1}]}, {"a'b": None, "l": None}, None],
            pa.struct(
                [("a'b", pa.decimal128(20, 2)), ("l", pa.list_(pa.struct([("x", pa.int32())])))]
            ),
            ['{"a\'b":1.10,"l":[{"x":1}]}', '{"a\'b":null,"l":null}', "null"],
        ),
        (
            [[("x", NAN), ('y"', None)], [], None],
            pa.map_(pa.string(), pa.float64()),
            ['{"x":"NaN","y\\"":null}', "{}", "null"],
        ),
        ([[(1, "a")]], pa.map_(pa.int64(), pa.string()), ['{"1":"a"}']),
        ([None], pa.null(), ["null"]),
    ],
)
def test_a_value_of_every_type(values: list[Any], kind: pa.DataType, texts: list[str]) -> None:
    text = text_of(pa.table({"v": pa.array(values, kind)}))
    assert text == "".join(f'{{"v":{value}}}\n' for value in texts)
    for line in text.split("\n")[:-1]:
        json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_rows_keep_their_order_and_columns_their_names() -> None:
    rows = pa.table({"k": range(5000), 'a "name"': ["x"] * 5000, "K": [None] * 5000})
    read = [
        json.loads(line)
        for line in text_of(pa.concat_tables([rows.slice(0, 3), rows.slice(3)])).splitlines()
    ]
    assert read == rows.to_pylist()
    assert text_of(rows.slice(0, 0)) == ""
