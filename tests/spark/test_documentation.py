"""Documentation blocks marked ``spark`` print what their pages show.

All pages run in this process and in one Spark session, one after the other; test_command_line.py
covers commands in separate processes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.support import muntin_command
from tests.unit.test_docs import GUIDES, blocks_of, commands_of, lines_of, name_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-1")]

PAGES = [page for page in GUIDES if any("spark" in block.marks for block in blocks_of(page))]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_programs_and_commands_print_the_output_on_the_page(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Plain Python blocks, which prepare files, share one namespace; Spark blocks do not."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    printed = ""
    for block in blocks_of(page):
        where = f"{name_of(page)}:{block.line}"
        if block.file:
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")
        elif block.runs("python"):
            exec(block.text, namespace)
        elif block.runs("python", "spark"):
            capsys.readouterr()
            exec(block.text, {"__name__": "__main__"})
            printed = capsys.readouterr().out
        elif block.runs("text", "spark"):
            assert lines_of(printed) == lines_of(block.text), where
        elif block.runs("console", "spark"):
            for command, expected in commands_of(block.text):
                code, said, reported = muntin_command(command, monkeypatch, capsys)
                assert code == 0, reported
                assert lines_of(said) == lines_of(expected), f"{where}: {command}"
