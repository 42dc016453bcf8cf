"""The architecture page describes the code: files and functions that it names exist."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from types import FrameType

import pytest

import muntin

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "muntin"
PAGE = ROOT / "docs" / "architecture.md"
STEP = re.compile(r"^\| \d+ \| `([^`]+)` \| `([^`]+)` \|", re.MULTILINE)
PAGES = [PAGE, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "design").glob("*.md"))]
HISTORY = {"joining.py", "rebuilding.py"}


def section(heading: str) -> str:
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"^### {heading}\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"there is no section {heading}"
    return found.group(1)


def functions_of(path: Path) -> set[str]:
    """Return the functions of a module, and its methods as Class.method."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            methods = [part.name for part in node.body if isinstance(part, ast.FunctionDef)]
            functions |= {f"{node.name}.{method}" for method in methods}
    return functions


PUSH = "In process: from push to poll"


@pytest.mark.parametrize("heading", [PUSH, "On Spark: from source to sink"])
def test_the_steps_of_the_path_of_a_row_exist(heading: str) -> None:
    steps = STEP.findall(section(heading))
    assert steps
    for file, function in steps:
        assert (SOURCE / file).is_file(), file
        assert function in functions_of(SOURCE / file), f"{file}: {function}"


def test_a_push_makes_the_calls_of_the_page_in_their_order() -> None:
    engine = muntin.Engine(clock=None)
    for name in "AB":
        engine.stream(name, {"k": "bigint", "ts": "timestamp"}, time="ts")
    query = engine.query("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 MINUTE")
    engine.push("A", [(1, 0)])
    calls: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        file = Path(frame.f_code.co_filename)
        if event == "call" and file.is_relative_to(SOURCE):
            calls.append((str(file.relative_to(SOURCE)), frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        engine.push("B", [(1, 0)])
        engine.advance(0)
        found = query.poll()
    finally:
        sys.setprofile(None)
    assert len(found) == 1
    following = iter(calls)
    for step in STEP.findall(section(PUSH)):
        assert step in following, f"{step} is not called, or not after the step before it"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_about_the_code_name_files_that_exist(page: Path) -> None:
    names = set(re.findall(r"`([\w./-]+\.(?:py|sh))`", page.read_text(encoding="utf-8")))
    for name in names - HISTORY:
        if "NAME" not in name and "/" in name:
            assert (SOURCE / name).is_file() or (ROOT / name).is_file(), name
