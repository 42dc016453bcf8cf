"""Every example runs quickly and prints the output in its README."""

from __future__ import annotations

import re
import runpy
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from muntin.testing import run_file

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FOLDERS = sorted(
    path for path in EXAMPLES.iterdir() if path.is_dir() and not path.name.startswith(("_", "."))
)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_an_example_prints_the_output_in_its_readme(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)  # an example must not depend on where it is run
    monkeypatch.setattr(sys, "argv", [f"{folder.name}.py"])
    expected = re.search(
        r"^```text output\n(.*?)^```$",
        (folder / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    assert expected, "the README says what you should see"
    with suppress(SystemExit):
        runpy.run_path(str(folder / f"{folder.name}.py"), run_name="__main__")
    assert capsys.readouterr().out == expected.group(1)


@pytest.mark.parametrize("script", sorted(EXAMPLES.rglob("*.cqt")), ids=lambda script: script.name)
def test_a_golden_script_passes(script: Path) -> None:
    report = run_file(script)
    assert report.ok, str(report)


def test_every_example_is_listed() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"]({folder.name}/README.md)" in text for folder in FOLDERS)
