"""What the documentation does with Spark: blocks marked ``spark``, in processes of their own, one page after the other."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.test_docs import GUIDES, blocks_of, name_of

pytestmark = pytest.mark.spark

PAGES = [page for page in GUIDES if any("spark" in block.marks for block in blocks_of(page))]


def output_of(folder: Path, *arguments: str) -> list[str]:
    done = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == 0, done.stderr
    return lines_of(done.stdout)


def lines_of(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_programs_and_commands_print_what_the_page_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain Python blocks, which prepare files, are run in this process."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    printed = [""]
    for block in blocks_of(page):
        where = f"{name_of(page)}:{block.line}"
        if block.file:
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")
        elif block.runs("python"):
            exec(block.text, namespace)
        elif block.runs("python", "spark"):
            printed = output_of(tmp_path, "-c", block.text)
        elif block.runs("text", "spark"):
            assert printed == lines_of(block.text), where
        elif block.runs("console", "spark"):
            for command, expected in re.findall(r"^\$ muntin (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE):
                said = output_of(tmp_path, "-c", "from muntin.cli import main; main()", *shlex.split(command))
                assert said == lines_of(expected), f"{where}: {command}"
