"""The command line: exit codes, output streams, JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
CREATE STREAM A (k INT, ts TIMESTAMP);
CREATE STREAM B (k INT, ts TIMESTAMP);
CREATE QUERY pairs AS SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 MINUTE;
"""


def muntin(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from muntin.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "app.sql"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


def test_check_and_explain_a_good_script(script: Path) -> None:
    checked = muntin("check", script, "--json")
    assert checked.returncode == 0
    assert json.loads(checked.stdout)["queries"] == ["pairs"]
    explained = muntin("explain", script)
    assert explained.returncode == 0
    assert "join: hash, algorithm eager" in explained.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE QUERY q AS SELECT k FROM Nosuch WINDOW 1 SECOND;", "query q, line 1, column 33"),
        (
            (
                'CREATE STREAM A (k INT, ts TIMESTAMP); CREATE QUERY q AS SELECT "[/x]" FROM A '
                "WINDOW 1 SECOND;"
            ),
            "no column '[/x]'",
        ),
        ("SET speed = 5;", "there is no setting 'speed'"),
        ("DROP QUERY q;", "there is no query 'q'"),
    ],
)
def test_a_users_mistake_ends_with_2_and_the_place_on_stderr(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "bad.sql"
    path.write_text(text, encoding="utf-8")
    for command in ("check", "explain"):
        done = muntin(command, path)
        assert done.returncode == 2
        assert message in done.stderr
        assert "Traceback" not in done.stderr
        assert done.stdout == ""


def test_missing_files_and_unknown_commands_end_with_2(tmp_path: Path) -> None:
    for arguments in (
        ["check", tmp_path / "none.sql"],
        ["test", tmp_path / "none.cqt"],
        ["nosuch"],
    ):
        done = muntin(*arguments)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr


def test_golden_scripts_end_with_1_when_a_check_fails(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.cqt", tmp_path / "bad.cqt"
    text = (
        "# about: one row\nstream A (k int)\nquery q: SELECT k FROM A WINDOW 1 SECOND\nfeed A\n"
        "1  7\nadvance 1\nout q\n+ 1  {}\n"
    )
    good.write_text(text.format(7), encoding="utf-8")
    bad.write_text(text.format(8), encoding="utf-8")
    passed = muntin("test", good)
    assert (passed.returncode, passed.stdout.splitlines()[-1]) == (0, "1 passed, 0 failed")
    failed = muntin("test", good, bad)
    assert (failed.returncode, failed.stdout.splitlines()[-1]) == (1, "1 passed, 1 failed")
    assert "bad.cqt:7" in failed.stdout


def test_the_version_is_printed() -> None:
    assert muntin("--version").stdout.startswith("muntin 0.")
