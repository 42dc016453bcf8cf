"""Stored tables from files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import muntin
from muntin.engine.table_files import load_table
from muntin.errors import InputError
from muntin.model.catalog import Options, Table

SCHEMA = pa.schema([("k", pa.int32()), ("n", pa.string())])
ROWS = [{"k": 1, "n": "one"}, {"k": None, "n": ""}, {"k": 3, "n": "drei, ä"}]


def load(**options: str) -> pa.Table:
    given: Options = tuple(options.items())
    return load_table(Table("T", SCHEMA, given))


def test_csv_with_and_without_a_header(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('k,n\n1,one\n,""\n3,"drei, ä"\n', encoding="utf-8")
    (tmp_path / "b.txt").write_text('1,one\n,""\n3,"drei, ä"\n', encoding="utf-8")
    assert load(path=str(tmp_path / "a.csv")).to_pylist() == ROWS
    assert load(path=str(tmp_path / "b.txt"), format="CSV", header="false").to_pylist() == ROWS


def test_json_and_parquet_and_a_folder_of_them(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(
        '{"k": 1, "n": "one"}\n{"k": null, "n": ""}\n{"k": 3, "n": "drei, ä"}\n', encoding="utf-8"
    )
    assert load(path=str(tmp_path / "a.json")).to_pylist() == ROWS
    table = pa.Table.from_pylist(ROWS)
    pq.write_table(table.slice(0, 1), tmp_path / "1.parquet")
    pq.write_table(table.slice(1), tmp_path / "2.parquet")
    assert load(path=str(tmp_path / "1.parquet")).to_pylist() == ROWS[:1]
    assert load(path=str(tmp_path), format="parquet").to_pylist() == ROWS


def test_a_table_without_a_path_is_empty() -> None:
    assert load().schema == SCHEMA
    assert len(load()) == 0


@pytest.mark.parametrize(
    ("name", "text", "options", "message"),
    [
        ("a.csv", None, {}, "table T reads '.*a.csv', where there is no such file"),
        (
            "a.xls",
            "x",
            {},
            r"table T has format 'xls', which cannot be read\. Formats are csv, json, parquet",
        ),
        ("a", "x", {}, "table T has format ''"),
        ("a.csv", "k,n\nx,one\n", {}, "table T cannot be read from '.*a.csv'"),
        (
            "a.csv",
            "k,m\n1,one\n",
            {},
            "the rows for table T have a column 'm' that does not belong there",
        ),
        ("a.csv", "k\n1\n", {}, "the rows for table T have no column 'n'"),
        ("a.parquet", "no parquet", {}, "table T cannot be read from"),
        ("a.csv", "", {}, "table T cannot be read from"),
    ],
)
def test_unreadable_files_are_refused(
    tmp_path: Path, name: str, text: str | None, options: dict[str, str], message: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load(path=str(tmp_path / name), **options)


def test_an_empty_folder_is_refused_as_a_table(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        load(path=str(tmp_path), format="csv")


def test_a_script_declares_and_joins_a_table_and_fails_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("k,n\n1,one\n2,two\n", encoding="utf-8")
    engine = muntin.Engine()
    (q,) = engine.execute(f"""
        CREATE STREAM A (k INT, ts TIMESTAMP);
        CREATE TABLE T (k INT, n VARCHAR) WITH (path = '{tmp_path}/t.csv');
        CREATE QUERY q AS SELECT A.k, T.n FROM A, T WHERE A.k = T.k WINDOW 1 SECOND;
    """)
    with pytest.raises(
        muntin.SqlError, match=r"line 2, column 34: table U reads .*no such file\. Check the path"
    ):
        engine.execute("-- a table\n    CREATE TABLE U (k INT) WITH (path = 'nosuch.csv')")
    engine.push("A", [(2, 0), (3, 0)])
    engine.advance(0)
    assert q.poll().select(["k", "n"]).to_pylist() == [{"k": 2, "n": "two"}]
