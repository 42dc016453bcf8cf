"""All benchmarks in a row: crashes, kept results and messages; two real ones end to end."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import run_all as module
from benchmarks.__main__ import main
from benchmarks.run import Run
from benchmarks.run_all import RunRequest, run_all

CHILD = """#!{python}
import json, sys
name, folder, *options = sys.argv[3], sys.argv[5], *sys.argv[6:]
print("WARN of a library", file=sys.stderr)
print("progress: measuring", name, file=sys.stderr)
if name == "memory":
    sys.exit("no memory left")
claim = {{"claim": "it is fast", "measured": 1, "side": "at most", "bound": 2}}
claims = [{{**claim, "holds": name != "window"}}]
run = {{"commit": "abc", "date": "2026-01-01 00:00", "minutes": 1.5, "quick": "--quick" in options}}
document = {{"name": name, "question": "Why?", "rows": [{{"figure": 7}}]}}
document |= {{"claims": claims, "machine": {{"cores": 2}}, "run": run}}
open(f"{{folder}}/{{name}}.json", "w").write(json.dumps(document))
"""


@pytest.fixture
def _made_up_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child = tmp_path / "child"
    child.write_text(CHILD.format(python=sys.executable), encoding="utf-8")
    child.chmod(child.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, "executable", str(child))
    monkeypatch.setattr(module, "revision", lambda: "abc")


def document(folder: Path, name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return read


@pytest.mark.usefixtures("_made_up_processes")
def test_a_crash_and_a_claim_that_does_not_hold_are_reported_and_stop_nothing(
    tmp_path: Path,
) -> None:
    reported: list[str] = []
    folder = tmp_path / "results"
    assert run_all(RunRequest(["memory", "window", "join"], folder), reported.append) == [
        "memory",
        "window",
    ]
    assert [line.partition("] ")[2] for line in reported if "done in" not in line] == [
        "memory: begins",
        "memory: measuring memory",
        "memory: FAILED: no memory left",
        "window: begins",
        "window: measuring window",
        "join: begins",
        "join: measuring join",
    ]
    assert reported[-1].startswith("[3 of 3, 0.0 min] join: done in")
    assert document(folder, "memory")["error"].splitlines() == [
        "exit code 1",
        "WARN of a library",
        "progress: measuring memory",
        "no memory left",
    ]
    page = (folder / "memory.md").read_text(encoding="utf-8")
    assert "**It failed**" in page
    assert "no memory left" in page
    assert "not kept" in (folder / "window.md").read_text(encoding="utf-8")
    index = (folder / "README.md").read_text(encoding="utf-8")
    assert (
        "| [memory](memory.md) | Does memory stay flat when a query runs for a long time? | "
        "**failed** |  |" in index
    )
    assert "| 1 of 1 | 1.5 |" in index
    assert "| 0 of 1 | 1.5 |" in index
    assert "no figures yet" in index


@pytest.mark.usefixtures("_made_up_processes")
def test_quick_runs_do_not_fail_by_their_claims(tmp_path: Path) -> None:
    assert run_all(RunRequest(["window", "join"], tmp_path, quick=True), lambda _: None) == []
    assert run_all(RunRequest(["memory"], tmp_path, quick=True), lambda _: None) == ["memory"]


@pytest.mark.parametrize(
    ("change", "kept"),
    [({}, True), ({"commit": "abd"}, False), ({"quick": True}, False), ({"commit": ""}, False)],
)
@pytest.mark.usefixtures("_made_up_processes")
def test_resuming_keeps_results_of_the_same_commit(
    tmp_path: Path,
    change: dict[str, Any],
    kept: bool,  # noqa: FBT001
) -> None:
    run_all(RunRequest(["join"], tmp_path), lambda _: None)
    old = document(tmp_path, "join")
    old["rows"] = [{"figure": 8}]
    old["run"] |= change
    (tmp_path / "join.json").write_text(json.dumps(old), encoding="utf-8")
    reported: list[str] = []
    run_all(RunRequest(["join"], tmp_path, resume=True), reported.append)
    assert document(tmp_path, "join")["rows"] == [{"figure": 8 if kept else 7}]
    assert any("kept" in line for line in reported) is kept


@pytest.mark.usefixtures("_made_up_processes")
def test_resuming_repeats_failed_benchmarks(tmp_path: Path) -> None:
    run_all(RunRequest(["memory"], tmp_path), lambda _: None)
    reported: list[str] = []
    run_all(RunRequest(["memory"], tmp_path, resume=True), reported.append)
    assert "memory: begins" in reported[0]


def test_a_run_records_its_date_and_duration() -> None:
    run = Run.ending_now(90, quick=True)
    assert run.minutes == 1.5
    assert run.date.startswith("20")
    assert Run(**run.to_dict()) == run


def test_two_benchmarks_from_the_command_line_to_the_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        sys, "argv", ["benchmarks", "memory", "window", "--quick", "--output", str(tmp_path)]
    )
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err
    assert not ended.value.code, said
    assert "[2 of 2" in said
    for name in ("memory", "window"):
        assert document(tmp_path, name)["run"]["quick"] is True
        page = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
        assert "A quick run" in page
        assert "## Figures" in page
    (tmp_path / "window.md").unlink()
    monkeypatch.setattr(sys, "argv", ["benchmarks", "report", "--output", str(tmp_path)])
    with pytest.raises(SystemExit):
        main()
    assert (tmp_path / "window.md").exists()
