"""The architecture page describes the code: files and functions that it names exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    ("heading", "most"),
    [("In process: from push to poll", 10), ("On Spark: from source to sink", 15)],
)
def test_the_path_of_a_row_is_short_and_its_steps_exist(heading: str, most: int) -> None:
    steps = STEP.findall(section(heading))
    files = {file for file, _ in steps}
    assert steps
    assert len(files) <= most
    for file, function in steps:
        assert (SOURCE / file).is_file(), file
        assert function in functions_of(SOURCE / file), f"{file}: {function}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_about_the_code_name_files_that_exist(page: Path) -> None:
    names = set(re.findall(r"`([\w./-]+\.(?:py|sh))`", page.read_text(encoding="utf-8")))
    for name in names - HISTORY:
        if "NAME" not in name and "/" in name:
            assert (SOURCE / name).is_file() or (ROOT / name).is_file(), name
