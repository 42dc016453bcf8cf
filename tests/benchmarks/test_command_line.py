"""The command line of the benchmarks: exit codes, what goes where, JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.catalogue import BENCHMARKS
from benchmarks.report import Claim, Report

ROOT = Path(__file__).parents[2]


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

    def __call__(self, *arguments: str) -> Run:
        self._patch.setattr(sys, "argv", ["benchmarks", *arguments])
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


@pytest.mark.parametrize(
    ("measured", "quick", "code"), [(1.0, False, 0), (3.0, False, 1), (3.0, True, 0)]
)
def test_a_benchmark_fails_when_a_claim_does_not_hold(
    shell: Shell,
    monkeypatch: pytest.MonkeyPatch,
    measured: float,
    quick: bool,  # noqa: FBT001
    code: int,
) -> None:
    def bench(progress: object, *, quick: bool = False) -> Report:
        assert callable(progress)
        progress(f"measuring, quick: {quick}")
        return Report(
            "join",
            "How fast?",
            [{"what": "it", "seconds": 1234.5}],
            [Claim("seconds", measured, 2.0)],
        )

    monkeypatch.setitem(BENCHMARKS, "join", bench)
    arguments = ["--quick"] if quick else []
    done = shell("join", *arguments, "--output", "results")
    assert done.code == code
    assert f"measuring, quick: {quick}" in done.err
    assert f"{'holds' if measured < 2 else 'DOES NOT HOLD'}: seconds" in done.out
    assert "1,234.5" in done.out
    written = json.loads((shell.folder / "results" / "join.json").read_text(encoding="utf-8"))
    assert written["claims"] == [
        {
            "claim": "seconds",
            "measured": measured,
            "side": "at most",
            "bound": 2.0,
            "holds": measured < 2,
        }
    ]
    assert written["run"]["quick"] is quick
    printed = json.loads(shell("join", "--json", *arguments, "--output", "results").out)
    assert {**printed, "run": 0} == {**written, "run": 0}
    page = (shell.folder / "results" / "join.md").read_text(encoding="utf-8")
    assert "1,234.5" in page
    assert ("A quick run" in page) is quick


@pytest.mark.parametrize("name", ["window", "memory", "groups", "outer-joins"])
def test_quick_benchmarks_run(shell: Shell, name: str) -> None:
    done = shell(name, "--quick", "--json")
    assert done.code == 0
    report = json.loads(done.out)
    assert report["name"] == name
    assert report["rows"]
    assert not list(shell.folder.iterdir())


def test_an_unknown_benchmark_ends_with_2(shell: Shell) -> None:
    done = shell("nosuch")
    assert done.code == 2
    assert "there is no benchmark 'nosuch'" in done.err


def test_a_quick_benchmark_prints_json_and_writes_it_to_the_given_file(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "join",
        "--quick",
        "--json",
        "--output",
        str(tmp_path),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads(
        (tmp_path / "join.json").read_text(encoding="utf-8")
    )
