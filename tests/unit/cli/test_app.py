"""Commands in this process: exit codes, stdout for results, stderr for the rest, JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from muntin.cli import main

SCRIPT = """CREATE STREAM A (k INT, ts TIMESTAMP);
CREATE STREAM B (k INT, ts TIMESTAMP);
CREATE QUERY pairs AS SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 MINUTE;
CREATE QUERY gone AS SELECT k FROM A WINDOW 1 SECOND;
DROP QUERY gone;
"""
GOLDEN = """# about: one row
stream A (k int)
query q: SELECT k FROM A WINDOW 1 SECOND
feed A
1  7
advance 1
out q
+ 1  {}
"""


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str


class Shell:
    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.folder = folder
        self._patch, self._capture = monkeypatch, capsys
        monkeypatch.chdir(folder)

    def write(self, files: Mapping[str, str | bytes]) -> None:
        for name, text in files.items():
            (self.folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())

    def __call__(self, *arguments: str) -> Run:
        self._patch.setattr(sys, "argv", ["muntin", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code or 0
        assert isinstance(code, int)
        said = self._capture.readouterr()
        return Run(code, said.out, said.err)


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    return Shell(tmp_path, monkeypatch, capsys)


def test_check_reports_success_on_stderr(shell: Shell) -> None:
    shell.write({"app.sql": SCRIPT})
    done = shell("check", "app.sql")
    assert (done.code, done.out) == (0, "")
    assert "app.sql: ok, 1 query" in done.err
    done = shell("check", "app.sql", "--json")
    assert (done.code, json.loads(done.out), done.err) == (
        0,
        {"script": "app.sql", "queries": ["pairs"]},
        "",
    )


def test_explain_prints_plans_and_touches_no_data(shell: Shell) -> None:
    table = "CREATE TABLE T (k INT) WITH (path = 'nosuch.csv');\n"
    shell.write({"app.sql": table + SCRIPT, "none.sql": "-- nothing\n"})
    done = shell("explain", "app.sql")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(
        "query pairs: emits inserts at every change\n├─ sharing group: this query alone\n├─ "
        "join: hash, algorithm eager"
    )
    machines = json.loads(shell("explain", "app.sql", "--json").out)
    assert [entry["query"] for entry in machines] == ["pairs"]
    assert [source["alias"] for source in machines[0]["sources"]] == ["A", "B"]
    assert machines[0]["join"]["method"] == "hash"
    assert "measured" not in machines[0]
    assert shell("explain", "none.sql") == Run(0, "no queries\n", "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            (
                "CREATE STREAM A (k INT, ts TIMESTAMP);\n  CREATE QUERY q AS SELECT nosuch "
                "FROM A WINDOW 1 SECOND"
            ),
            "query q, line 2, column 28",
        ),
        ("CREATE QUERY q AS SELECT 1 FROM [bold]x[/bold]", "line 1"),
        (
            (
                "CREATE STREAM A (k INT, ts TIMESTAMP); CREATE QUERY q AS SELECT k FROM A "
                "WINDOW 1 SECOND WITH (nosuch = 1)"
            ),
            "no setting 'nosuch'",
        ),
        (
            (
                "CREATE STREAM A (k INT, ts TIMESTAMP); CREATE QUERY a AS SELECT k FROM A "
                "WINDOW 1 SECOND"
            ),
            "line 1, column 40: the name a is taken",
        ),
        (
            SCRIPT + "CREATE STREAM Pairs (ts TIMESTAMP)",
            "line 6, column 1: there is already a query pairs",
        ),
        (SCRIPT + "DROP STREAM A", "line 6, column 1: stream A is read by query pairs"),
        (SCRIPT + "DROP TABLE A", "line 6, column 1: there is no table A"),
        ("SET expiry = 'never'", "line 1, column 1: setting expiry cannot be 'never'"),
        (
            "CREATE STREAM A (k INT, ts TIMESTAMP) WITH (rate = 'x', distinct = '3')",
            "rate cannot be 'x'",
        ),
        (b"\xff\xfe\x00", "cannot read 'bad.sql'"),
    ],
)
def test_check_and_explain_refuse_what_the_engine_would_refuse(
    shell: Shell, text: str | bytes, message: str
) -> None:
    shell.write({"bad.sql": text})
    for command in (["check"], ["explain"], ["explain", "--json"]):
        done = shell(*command, "bad.sql")
        assert (done.code, done.out) == (2, "")
        assert message in done.err
        assert done.err.startswith("error: ")


def test_missing_files_are_reported(shell: Shell) -> None:
    assert "there is no file 'none.sql'. Check the path" in shell("check", "none.sql").err
    (shell.folder / "folder").mkdir()
    for arguments in (
        ["check", "none.sql"],
        ["check", "folder"],
        ["test", "none.cqt"],
        ["test", "folder"],
        ["test"],
        ["check"],
    ):
        assert shell(*arguments).code == 2


def test_golden_scripts_are_run_and_reported_one_by_one(shell: Shell) -> None:
    shell.write({"good.cqt": GOLDEN.format(7), "bad.cqt": GOLDEN.format(8)})
    assert shell("test", "good.cqt").code == 0
    done = shell("test", "good.cqt", "bad.cqt", "--json")
    assert done.code == 1
    good, bad = json.loads(done.out)
    assert good == {"script": "good.cqt", "ok": True, "failures": []}
    assert (bad["script"], bad["ok"]) == ("bad.cqt", False)
    assert bad["failures"][0].startswith("line 7: out q: the results differ")


def test_golden_scripts_can_be_completed(shell: Shell) -> None:
    shell.write({"bad.cqt": GOLDEN.format(8)})
    assert shell("test", "--complete", "bad.cqt").code == 0
    assert (shell.folder / "bad.cqt").read_text(encoding="utf-8") == GOLDEN.format(7)


def test_settings_for_golden_scripts(shell: Shell) -> None:
    shell.write({"good.cqt": GOLDEN.format(7)})
    assert (
        shell("test", "--set", "algorithm=naive", "--set", "expiry = eager", "good.cqt").code == 0
    )
    done = shell("test", "--set", "expiry", "good.cqt")
    assert done.code == 2
    assert "name=value" in done.err
    done = shell("test", "--set", "expiry=never", "good.cqt")
    assert done.code == 2
    assert "setting expiry cannot be 'never'" in done.err


def test_a_file_that_is_not_a_golden_script_ends_with_2(shell: Shell) -> None:
    shell.write({"odd.cqt": "frobnicate\n"})
    done = shell("test", "odd.cqt")
    assert done.code in {1, 2}
    assert "frobnicate" in done.out + done.err


def test_the_demo_needs_at_least_one_second(shell: Shell) -> None:
    assert shell("demo", "--seconds", "0").code == 2


def test_no_command_shows_help(shell: Shell) -> None:
    done = shell()
    assert done.code in {0, 2}
    assert all(
        command in done.out + done.err for command in ("demo", "run", "check", "explain", "test")
    )
