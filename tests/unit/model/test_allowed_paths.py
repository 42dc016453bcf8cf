"""Scripts confined to folders: no way out by links, ``..``, URLs, patterns, options or formats."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import muntin
from muntin.engine.script_check import Scope, ScriptCheck
from muntin.errors import InputError, SettingError, SqlError
from muntin.model.allowed_paths import AllowedPaths


@pytest.fixture(autouse=True)
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with ``allowed``, in which the test runs, and ``secret`` beside it."""
    tmp_path = Path(os.path.realpath(tmp_path))
    inside = tmp_path / "allowed"
    (inside / "in").mkdir(parents=True)
    (inside / "deep" / "er").mkdir(parents=True)
    (tmp_path / "secret").mkdir()
    (tmp_path / "allowed-not").mkdir()
    for folder in (inside / "in", tmp_path / "secret"):
        (folder / "t.csv").write_text("k\n1\n", encoding="utf-8")
    (inside / "out_link").symlink_to(tmp_path / "secret")
    (inside / "in_link").symlink_to(inside / "in")
    (inside / "file_link.csv").symlink_to(tmp_path / "secret" / "t.csv")
    (inside / "deep" / "er" / "link").symlink_to(tmp_path / "secret")
    monkeypatch.chdir(inside)
    return tmp_path


def allowed(*more: str | Path) -> AllowedPaths:
    found = AllowedPaths.of([".", *more])
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("path", "rest"),
    [
        ("in", "in"),
        ("in/t.csv", "in/t.csv"),
        ("./in/../in/", "in"),
        ("in_link", "in"),
        ("in_link/t.csv", "in/t.csv"),
        ("not/yet/there", "not/yet/there"),
        ("{base}/allowed/in", "in"),
        ("file://{base}/allowed/in", "in"),
        ("file:{base}/allowed/in", "in"),
        ("file://localhost{base}/allowed/in", "in"),
    ],
)
def test_paths_inside_are_resolved(base: Path, path: str, rest: str) -> None:
    assert allowed().resolved(path.format(base=base), patterns=True) == str(base / "allowed" / rest)


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../secret",
        "in/../../secret/t.csv",
        "not/yet/../../../secret",
        "../allowed-not",
        "{base}/secret",
        "/etc/passwd",
        "/",
        "file:///etc/passwd",
        "FILE:///etc/passwd",
        "file:/etc/passwd",
        "file://elsewhere/etc/passwd",
        "out_link",
        "out_link/t.csv",
        "out_link/not/there",
        "file_link.csv",
        "deep",
        "deep/er/link",
        "in_link/../../secret",
        "hdfs://host/x",
        "s3a://bucket/x",
        "http:etc",
    ],
)
@pytest.mark.parametrize("patterns", [False, True])
def test_ways_out_are_refused(base: Path, path: str, patterns: bool) -> None:  # noqa: FBT001
    with pytest.raises(InputError, match="outside the allowed folders"):
        allowed().resolved(path.format(base=base), patterns=patterns)


@pytest.mark.parametrize(
    "pattern",
    [
        "in/*/../../../secret",
        "in/{a,../../../secret}",
        "in/{a,b/../../..}",
        "in/{..,a}",
        "in/\\.\\./\\.\\./secret",
        "*",
        "../*",
    ],
)
def test_patterns_that_could_lead_out_are_refused(pattern: str) -> None:
    with pytest.raises(InputError, match=r"outside the allowed folders|could lead out"):
        allowed().resolved(pattern, patterns=True)


def test_patterns_inside_are_kept(base: Path) -> None:
    assert allowed().resolved("in/*.cs[v]", patterns=True) == f"{base}/allowed/in/*.cs[v]"
    assert allowed().resolved("in/{a,b}*", patterns=True) == f"{base}/allowed/in/{{a,b}}*"


def test_urls_are_allowed_by_prefix() -> None:
    found = allowed("s3a://bucket/in", "hdfs://host")
    for path in ("s3a://bucket/in", "s3a://bucket/in/", "s3a://bucket/in/x/*.csv", "hdfs://host/x"):
        assert found.resolved(path, patterns=True) == path
    for path in (
        "s3a://bucket/input",
        "s3a://bucket",
        "s3a://bucket/in/../x",
        "s3a://bucket/in/%2E%2e/x",
        "s3a://bucket/in/\\../x",
        "s3a://bucket/in/{..,a}",
        "hdfs://hostile/x",
        "s3://bucket/in",
    ):
        with pytest.raises(InputError):
            found.resolved(path, patterns=True)


_STEPS = st.sampled_from(
    [
        "..",
        ".",
        "in",
        "in_link",
        "out_link",
        "er",
        "deep",
        "link",
        "nowhere",
        "t.csv",
        "allowed",
        "secret",
    ]
)


@given(st.lists(_STEPS, max_size=6))
def test_whatever_the_steps_only_files_inside_are_opened(steps: list[str]) -> None:
    path = Path("/".join(steps) or ".")
    inside = Path.cwd().resolve()
    try:
        opened = allowed().open(path)
    except (InputError, OSError):
        return
    with opened:
        real = Path(f"/proc/self/fd/{opened.fileno()}").readlink()
    assert real.is_relative_to(inside)


def test_a_link_swapped_after_the_check_is_noticed(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, path = allowed(), Path("swapped.csv")
    path.symlink_to(base / "secret" / "t.csv")
    checked = AllowedPaths.resolved

    def swap(self: AllowedPaths, given: str, *, patterns: bool = False) -> str:
        path.unlink()
        path.symlink_to(base / "allowed" / "in" / "t.csv")
        return checked(self, given, patterns=patterns)

    monkeypatch.setattr(AllowedPaths, "resolved", swap)
    with pytest.raises(InputError, match="changed while it was opened"):
        found.open(path)


@pytest.mark.parametrize("given", [3, [3], [""], {"a": 1}, [["x"]], ""])
def test_values_that_are_not_paths_are_refused(given: object) -> None:
    with pytest.raises(SettingError, match="allowed_paths cannot be"):
        AllowedPaths.of(given)


STREAM = "CREATE STREAM A (k INT, ts TIMESTAMP) WITH"
QUERY = (
    "CREATE STREAM A (k INT, ts TIMESTAMP); CREATE QUERY q AS SELECT k FROM A WINDOW 1 SECOND WITH"
)
REFUSED = [
    "CREATE TABLE T (k INT) WITH (path = '../secret/t.csv')",
    "CREATE TABLE T (k INT) WITH (path = 'file_link.csv')",
    "CREATE TABLE T (k INT) WITH (path = 'out_link', format = 'csv')",
    "CREATE TABLE T (k INT) WITH (path = '/etc/passwd', format = 'csv', header = 'false')",
    f"{STREAM} (format = 'csv', path = '../secret')",
    f"{STREAM} (format = 'text', path = '/etc/*')",
    f"{STREAM} (format = 'csv', path = 's3a://bucket/x')",
    (
        f"{STREAM} (format = 'csv', path = 'in', cleanSource = 'archive', sourceArchiveDir = "
        "'../secret')"
    ),
    f"{STREAM} (format = 'xml', path = 'in', rowValidationXSDPath = '/etc/passwd')",
    f"{STREAM} (format = 'avro', path = 'in', avroSchemaUrl = 'http://elsewhere/x')",
    f"{STREAM} (format = 'parquet', path = 'in', basePath = '/')",
    f"{STREAM} (format = 'kafka', subscribe = 'x')",
    f"{STREAM} (format = 'jdbc', url = 'jdbc:x')",
    (
        f"{STREAM} (format = 'org.apache.spark.sql.execution.datasources.text.TextFileFormat', "
        "path = 'in')"
    ),
    f"{STREAM} (format = 'socket', host = 'localhost', port = 9)",
    f"{QUERY} (sink = 'csv', path = '../out')",
    f"{QUERY} (sink = 'orc', path = 'out_link/x')",
    f"{QUERY} (sink = 'parquet', path = 's3a://bucket/x')",
    f"{QUERY} (sink = 'jdbc')",
    f"{QUERY} (sink = 'delta', path = 'in')",
]


@pytest.mark.parametrize("script", REFUSED)
def test_confined_scripts_cannot_reach_out(script: str) -> None:
    pattern = (
        r"line 1, column \d\d+: .*(outside the allowed folders|reach more than the allowed folders)"
    )
    with pytest.raises(SqlError, match=pattern):
        muntin.Engine(allowed_paths=["."]).execute(script)
    for scope in (Scope(allowed()), Scope(allowed(), files=False)):
        assert [
            error
            for error in map(str, ScriptCheck(scope).read(script))
            if "the allowed folders" in error
        ]


def test_confined_scripts_work_inside_and_unconfined_ones_anywhere(base: Path) -> None:
    inside = (
        "CREATE TABLE T (k INT) WITH (path = 'in/t.csv'); CREATE TABLE U (k INT) "
        "WITH (format = 'csv', path = 'in_link');"
    )
    muntin.Engine(allowed_paths=[base / "allowed"]).execute(inside)
    muntin.Engine(allowed_paths=str(base)).execute(REFUSED[0])
    muntin.Engine().execute(REFUSED[0])
    with pytest.raises(SqlError, match="outside"):
        muntin.Engine(allowed_paths=[]).execute(inside)


@pytest.mark.parametrize("statement", ["SET allowed_paths = '/'", "SET Allowed_Paths TO off"])
def test_scripts_cannot_change_the_setting(statement: str) -> None:
    engine = muntin.Engine(allowed_paths=["."])
    with pytest.raises(SqlError, match="a script cannot change allowed_paths"):
        engine.execute(statement)
    engine.execute("CREATE STREAM A (k INT, ts TIMESTAMP)")
    with pytest.raises(SettingError, match="a script cannot change allowed_paths"):
        engine.query("SELECT k FROM A WINDOW 1 SECOND WITH (allowed_paths = '/')")
