"""``muntin check`` reports every mistake of a script at once, with its place, without Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import muntin
from muntin.engine.script_check import Scope, ScriptCheck
from muntin.errors import SqlError
from muntin.model.allowed_paths import AllowedPaths

COLUMNS = "(k INT, ts TIMESTAMP)"
A = f"CREATE STREAM A {COLUMNS} WITH (format = 'json', path = 'in');"
Q = "CREATE QUERY q AS SELECT k FROM A WINDOW 1 SECOND"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with input, in which the test runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "file").write_text("x", encoding="utf-8")
    (tmp_path / "t.csv").write_text("k,n\n1,one\n", encoding="utf-8")
    (tmp_path / "t.json").write_text('{"k": 1, "n": "one", "more": 2}\n', encoding="utf-8")
    pq.write_table(pa.table({"k": [1]}), tmp_path / "t.parquet")
    return tmp_path


def found(text: str, scope: Scope | None = None) -> list[str]:
    """Return the errors of a script as lines."""
    return [str(error) for error in ScriptCheck(scope or Scope()).read(text)]


SOUND = [
    A + Q,
    f"CREATE STREAM A {COLUMNS}; {Q};",
    f"CREATE STREAM A {COLUMNS} WITH (format = 'pulsar', topic = 'x', slack = '1 second');",
    (
        f"CREATE STREAM A {COLUMNS} WITH (format = 'kafka', servers = 'h:9092', topic = 'x', "
        "value = 'json', slack = '1 second');"
    ),
    f"CREATE STREAM A {COLUMNS} WITH (format = 'org.example.Source', anything = 'x');",
    (
        f"CREATE STREAM A {COLUMNS} "
        "WITH (format = 'CSV', PATH = 'in', maxfilespertrigger = 1, header = true);"
    ),
    (
        f"CREATE STREAM A {COLUMNS} "
        "WITH (format = 'parquet', path = 'in', reader = 'spark', mergeSchema = true);"
    ),
    f"CREATE STREAM A {COLUMNS} WITH (format = 'csv', path = 'nowhere/*.csv');",
    f"CREATE STREAM A {COLUMNS} WITH (format = 'csv', path = 's3a://partition/in');",
    (
        "CREATE STREAM R (timestamp TIMESTAMP, value BIGINT) "
        "WITH (format = 'rate', rowsPerSecond = '5');"
    ),
    "CREATE TABLE T (k INT, n VARCHAR) WITH (path = 't.csv'); CREATE TABLE U (k INT);",
    "CREATE TABLE T (k BIGINT) WITH (path = 't.parquet', format = 'parquet');",
    f"{A} {Q} WITH (sink = 'parquet', path = 'out/deep');",
    f"{A} {Q} WITH (format = 'csv', path = 'out', sharing = off);".replace("off", "'off'"),
    f"{A} {Q} WITH (sink = 'delta', path = 'out');",
    f"{A} {Q} WITH (sink = 'memory'); DROP QUERY q; {Q} WITH (sink = 'console');",
]


@pytest.mark.parametrize("text", SOUND)
def test_sound_scripts_have_no_errors(text: str) -> None:
    assert found(text) == []


MISTAKES = [
    (
        f"CREATE STREAM A {COLUMNS} WITH (format = 'parquett', path = 'in')",
        ["line 1, column 45: stream A has the unknown format 'parquett'. Did you mean 'parquet'?"],
    ),
    (
        f"CREATE STREAM A {COLUMNS} WITH (format = 'frob', path = 'in')",
        ["line 1, column 45: stream A has the unknown format 'frob'. Formats are "],
    ),
    (
        f"CREATE STREAM A {COLUMNS} WITH (slak = '1 second')",
        ["line 1, column 45: stream A has no option 'slak'. Did you mean 'slack'?"],
    ),
    (
        (
            f"CREATE STREAM A {COLUMNS} "
            "WITH (format = 'csv', path = 'in',\n  slak = '1 second', maxFilePerTrigger = 1)"
        ),
        [
            (
                "line 2, column 3: stream A of format 'csv' has no option 'slak'. Did you mean "
                "'slack'?"
            ),
            (
                "line 2, column 22: stream A of format 'csv' has no option 'maxfilepertrigger'. "
                "Did you mean 'maxFilesPerTrigger'?"
            ),
        ],
    ),
    (
        f"CREATE STREAM A {COLUMNS} WITH (format = 'csv')",
        ["line 1, column 45: stream A of format 'csv' has no path"],
    ),
    (
        f"CREATE STREAM A {COLUMNS} WITH (format = 'json', path = 'nowhere')",
        ["line 1, column 62: stream A reads 'nowhere', where there is nothing"],
    ),
    (
        f"CREATE STREAM A {COLUMNS} WITH (format = 'socket', port = 1)",
        ["line 1, column 45: stream A of format 'socket' has no host"],
    ),
    (
        f"CREATE STREAM A {COLUMNS} WITH (format = 'parquet', path = 'in', reader = 'arow')",
        ["line 1, column 78: the reader of stream A cannot be 'arow'"],
    ),
    (
        f"CREATE STREAM A {COLUMNS} WITH (path = 'in')",
        ["line 1, column 45: stream A has the option 'path' but no format"],
    ),
    (f"{A}\nCREATE STREAM B {COLUMNS}", ["line 2, column 1: stream B has no source"]),
    (
        "CREATE TABLE T (k INT) WITH (path = 'no.csv')",
        ["line 1, column 30: table T reads 'no.csv', where there is no such file"],
    ),
    (
        "CREATE TABLE T (k INT) WITH (path = 't.csv')",
        ["line 1, column 1: the rows for table T have a column 'n' that does not"],
    ),
    (
        "CREATE TABLE T (k INT, m INT) WITH (path = 't.parquet')",
        ["line 1, column 1: the rows for table T have no column 'm'"],
    ),
    (
        "CREATE TABLE T (k INT, n VARCHAR) WITH (path = 't.json')",
        ["line 1, column 1: the rows for table T have a column 'more'"],
    ),
    (
        "CREATE TABLE T (k INT) WITH (path = 'file', format = 'parquet')",
        ["line 1, column 30: table T cannot be read from 'file'"],
    ),
    (
        "CREATE TABLE T (k INT) WITH (path = 't.csv', format = 'cvs')",
        ["line 1, column 46: table T has format 'cvs', which"],
    ),
    (
        "CREATE TABLE T (k INT) WITH (path = 't.csv', heder = 'true')",
        ["line 1, column 46: table T of format 'csv' has no option 'heder'"],
    ),
    (
        "CREATE TABLE T (k INT) WITH (path = 't.csv', header = 'yes')",
        ["line 1, column 46: the header of table T cannot be 'yes'"],
    ),
    (
        "CREATE TABLE T (k INT) WITH (format = 'csv')",
        ["line 1, column 30: table T has the option 'format' but no path"],
    ),
    (
        f"{A}\n{Q} WITH (sink = 'parquet')",
        ["query q, line 2, column 57: the parquet sink of query q has no path"],
    ),
    (
        f"{A}\n{Q} WITH (format = 'csv')",
        ["query q, line 2, column 57: the csv sink of query q has no path"],
    ),
    (
        f"{A}\n{Q} WITH (path = 'out')",
        ["query q, line 2, column 57: the sink of query q has a path but no format"],
    ),
    (
        f"{A}\n{Q} WITH (sink = 'parquett', path = 'out')",
        ["query q, line 2, column 57: the sink of query q has the unknown format"],
    ),
    (
        f"{A}\n{Q} WITH (sink = 'rate')",
        [
            (
                "query q, line 2, column 57: the sink of query q has the format 'rate', which "
                "can be read"
            )
        ],
    ),
    (
        f"{A}\n{Q} WITH (sink = 'console', path = 'out')",
        ["query q, line 2, column 75: the sink of query q is console, where path"],
    ),
    (
        f"{A}\n{Q} WITH (sink = 'csv', format = 'csv', path = 'o')",
        ["query q, line 2, column 71: the sink of query q has both"],
    ),
    (
        f"{A}\n{Q} WITH (sink = 'csv', path = 'file/out')",
        ["query q, line 2, column 71: the sink of query q cannot make the folder"],
    ),
    (
        (
            f"{A}\n{Q} WITH (sink = 'csv', path = 'o');\n{Q.replace('q', 'r', 1)} WITH (sink = "
            "'csv', path = './x/../o')"
        ).replace("QUERr", "QUERY"),
        ["query r, line 3, column 71: "],
    ),
    (
        (
            f"{A}\n{Q} WITH (sink = 'orc', path = 's3a://bucket/o');\n"
            "CREATE QUERY r AS SELECT k FROM A WINDOW 1 SECOND "
            "WITH (sink = 'parquet', path = 's3a://bucket/o/')"
        ),
        ["query r, line 3, column 75: query q already writes to s3a://bucket/o"],
    ),
    (
        "CREATE STREAM A (k INT[], ts TIMESTAMP);\n" + Q + " WITH (sink = 'csv', path = 'o')",
        ["line 2, column 1: column k of type list<"],
    ),
    (
        f"{A}\n{Q} WITH (pth = 'out', sharng = 'on')",
        [
            "query q, line 2, column 57: there is no setting 'pth'. Did you mean 'path'?",
            "query q, line 2, column 70: there is no setting 'sharng'. Did you mean 'sharing'?",
        ],
    ),
    (
        f"CREATE STREAM A {COLUMNS} WITH (format = 'csv', path = '{'x' * 5000}')",
        ["line 1, column 61: stream A reads 'xxx"],
    ),
    (
        f"CREATE TABLE T (k INT) WITH (path = '{'x' * 5000}.csv')",
        ["line 1, column 30: table T reads 'xxx"],
    ),
    (
        f"{A}\n{Q} WITH (sink = 'csv', path = '{'x' * 5000}')",
        ["query q, line 2, column 71: the sink of query q cannot make the folder"],
    ),
    ("SET allowed_paths = '/'", ["line 1, column 1: a script cannot change allowed_paths"]),
    (
        f"{A}\n{Q} WITH (allowed_paths = '/')",
        ["query q, line 2, column 57: a script cannot change allowed_paths"],
    ),
]


@pytest.mark.parametrize(("text", "errors"), MISTAKES)
def test_each_mistake_is_found_with_its_place(text: str, errors: list[str]) -> None:
    said = found(text)
    assert len(said) == len(errors), said
    for one, expected in zip(said, errors, strict=True):
        assert one.startswith(expected)


def test_all_errors_of_a_script_are_reported_in_order_and_none_that_only_follows() -> None:
    text = f"""CREATE STREAM A {COLUMNS} WITH (format = 'parquett', path = 'nowhere');
CREATE STREM B {COLUMNS};
CREATE STREAM C (k IMT, ts TIMESTAMP);
CREATE QUERY good AS SELECT k FROM A WINDOW 1 SECOND;
CREATE QUERY bad AS SELECT nosuch FROM A WINDOW 1 SECOND;
CREATE QUERY follows AS SELECT B.k FROM B, C WHERE B.k = C.k WINDOW 1 SECOND;
SET expiry = 'never';
DROP QUERY bad;
DROP STREAM C;
DROP QUERY nowhere;
CREATE QUERY last AS SELECT k FROM A;
"""
    assert [error.split(":")[0] for error in found(text)] == [
        "line 1, column 45",
        "line 2, column 8",
        "line 3, column 20",
        "query bad, line 5, column 28",
        "line 7, column 1",
        "line 10, column 1",
        "query last, line 11, column 36",
    ]


def test_a_declaration_with_wrong_options_still_counts_for_what_follows() -> None:
    text = (
        f"CREATE STREAM A {COLUMNS} WITH (format = 'csv', path = 'nowhere');\nCREATE QUERY q AS "
        "SELECT nosuch FROM A WINDOW 1 SECOND"
    )
    assert [error.split(":")[0] for error in found(text)] == [
        "line 1, column 61",
        "query q, line 2, column 26",
    ]


def test_a_missing_semicolon_spoils_no_later_statement() -> None:
    text = (
        f"CREATE STREAM A {COLUMNS}\nCREATE STREAM B {COLUMNS};\n{Q};\nCREATE QUERY r AS "
        "SELECT k FROM B WINDOW 1 SECOND;"
    )
    assert [error.split(":")[0] for error in found(text)] == ["line 2, column 1"]


@pytest.mark.parametrize(
    ("broken", "column"),
    [
        ("CREATE STREAM B (k INT\x00, ts TIMESTAMP);", 23),
        ("CREATE QUERY b AS SELECT 'x FROM B WINDOW 1 SECOND;", 26),
    ],
)
def test_after_text_that_cannot_be_tokenized_reading_resumes_behind_the_next_semicolon(
    broken: str, column: int
) -> None:
    later = (
        "CREATE QUERY c AS SELECT nosuch FROM A WINDOW 1 SECOND;\nCREATE QUERY d AS SELECT k "
        "FROM B WINDOW 1 SECOND;"
    )
    text = f"CREATE STREAM A {COLUMNS};\n{broken}\n{later}"
    errors = [error.split(":")[0] for error in found(text)]
    assert errors[0] == f"line 2, column {column}"
    assert "query c, line 3, column 26" in errors


def test_semicolons_in_quotes_and_comments_end_nothing() -> None:
    query = "CREATE QUERY q AS SELECT ';' AS s, \"no;such\" FROM A WINDOW 1 SECOND"
    text = f"CREATE STREAM A {COLUMNS}; -- a; b\n/* c; */ {query}; SET nosuch = 1"
    assert [error.split(":")[0] for error in found(text)] == [
        "query q, line 2, column 45",
        "line 2, column 79",
    ]


def test_explain_looks_at_no_files_and_a_run_needs_sources() -> None:
    text = (
        f"CREATE STREAM A {COLUMNS} WITH (format = 'csv', path = 'nowhere'); "
        "CREATE TABLE T (k INT) WITH (path = 'no.csv');"
    )
    assert found(text, Scope(files=False)) == []
    assert len(found(text)) == 2
    assert found(f"CREATE STREAM A {COLUMNS};\n{Q}", Scope(on_spark=True))[0].startswith(
        "line 1, column 1: stream A has no source"
    )


def test_what_only_a_package_can_check_is_noted() -> None:
    check = ScriptCheck(Scope())
    assert check.read(f"CREATE STREAM A {COLUMNS} WITH (format = 'pulsar', topic = 'x')") == []
    assert check.notes == ["stream A: only Spark can check the options of format 'pulsar'"]


@pytest.mark.parametrize("text", [*SOUND, *(text for text, _ in MISTAKES)])
def test_confinement_to_the_folder_changes_nothing_for_paths_inside(
    text: str, folder: Path
) -> None:
    if any(
        word in text
        for word in (
            "kafka",
            "pulsar",
            "org.example",
            "s3a",
            "delta",
            "socket",
            "file/out",
            "rate'",
        )
    ):
        return
    assert found(text, Scope(AllowedPaths.of([folder]))) == found(text)


_PIECES = st.sampled_from(
    [
        f"CREATE STREAM A {COLUMNS}",
        f"CREATE STREAM B {COLUMNS} WITH (slack = '1 second')",
        f"CREATE STREAM C {COLUMNS} WITH (format = 'json', path = 'in')",
        "CREATE STREAM D (k INT)",
        "CREATE STREAM A",
        "CREATE TABLE T (k INT)",
        Q,
        (
            "CREATE QUERY r AS SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND "
            "WITH (sink = 'csv')"
        ),
        "CREATE QUERY s AS SELECT k, COUNT(*) AS n FROM C GROUP BY k WINDOW 1 SECOND",
        "DROP QUERY q",
        "DROP STREAM IF EXISTS A",
        "DROP TABLE T",
        "SET expiry = 'lazy'",
        "SET nosuch = 1",
        "SELECT ';'",
        "'",
        '"',
        "/*",
        "$$",
        "\x00",
        ";",
        "(",
        ")",
    ]
)


def _raised(script: str) -> str | None:
    """Return the error that the engine raises for a script."""
    try:
        muntin.Engine().execute(script)
    except SqlError as error:
        return str(error)
    return None


@given(st.lists(_PIECES, max_size=8), st.sampled_from([";\n", "; ", " "]))
def test_a_check_agrees_with_the_engine_on_whether_and_where_the_first_error_is(
    pieces: list[str], between: str
) -> None:
    script = between.join(pieces)
    errors = ScriptCheck(Scope(files=False)).read(script)
    raised = _raised(script)
    assert (raised is None) == (errors == [])
    assert raised is None or raised in map(str, errors)
    places = [(error.place.line, error.place.column) for error in errors]
    assert places == sorted(places)


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command on a machine without Java."""
    code = [sys.executable, "-c", "from muntin.cli import main; main()", *arguments]
    environment = {
        **os.environ,
        "JAVA_HOME": "nowhere",
        "PYTHONPATH": str(Path(muntin.__file__).parents[1]),
    }
    return subprocess.run(
        code, capture_output=True, text=True, check=False, timeout=120, env=environment
    )


def test_the_command_prints_all_errors_or_a_list_of_them_and_needs_no_spark(folder: Path) -> None:
    script = folder / "app.sql"
    script.write_text(f"{A}\nSET nosuch = 1;\n{Q} WITH (sink = 'csv');", encoding="utf-8")
    text = command("check", "app.sql")
    assert (text.returncode, text.stdout) == (2, "")
    first, second = text.stderr.splitlines()
    assert first.startswith("error: line 2, column 1: there is no setting 'nosuch'")
    assert second.startswith(
        "error: query q, line 3, column 57: the csv sink of query q has no path"
    )
    machines = command("check", "app.sql", "--json")
    assert machines.returncode == 2
    reported = json.loads(machines.stdout)
    assert [(one["line"], one["column"], one["query"]) for one in reported["errors"]] == [
        (2, 1, None),
        (3, 57, "q"),
    ]
    assert reported["errors"][1]["error"] == "the csv sink of query q has no path"
    assert reported["queries"] == ["q"]


def test_scripts_are_confined_on_the_command_line(folder: Path) -> None:
    (folder / "app.sql").write_text(
        f"CREATE TABLE T (k INT, n VARCHAR) WITH (path = 't.csv');\n{A}\n{Q};", encoding="utf-8"
    )
    for arguments in (["check"], ["explain"], ["run", "--once"]):
        refused = command(
            *arguments, "app.sql", "--allow-path", "in", "--allow-path", "s3a://partition"
        )
        assert refused.returncode == 2
        assert (
            "error: line 1, column 41: table T: the path 't.csv' is outside the allowed folders"
            in refused.stderr
        )
    assert (
        command("check", "app.sql", "--allow-path", "in", "--allow-path", "t.csv").returncode == 0
    )
    assert command("check", "app.sql").returncode == 0


def test_the_engine_stops_at_the_first_error() -> None:
    engine = muntin.Engine()
    with pytest.raises(
        SqlError, match=r"line 2, column 46: stream B has no option 'slak'\. Did you mean 'slack'\?"
    ):
        engine.execute(
            f"CREATE STREAM A {COLUMNS};\n CREATE STREAM B {COLUMNS} "
            f"WITH (slak = '1 second');\n CREATE STREAM C {COLUMNS};"
        )
    with pytest.raises(SqlError, match="unknown format 'parquett'"):
        engine.execute(f"CREATE STREAM D {COLUMNS} WITH (format = 'parquett', path = 'in')")
    engine.query("SELECT k FROM A WINDOW 1 SECOND")
