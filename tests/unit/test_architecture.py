"""The architecture page describes the code.

Files and functions that it names exist, and a row that is pushed passes the files of its table.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import FrameType

import numpy as np
import pyarrow as pa
import pytest

import muntin
from muntin.operators.join import NewRows
from muntin.state.batch import Batch

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


KEY, TIME = 7_654_321, 1_600_000_000_123_457
"""The values of the row that is followed; nothing else has them."""
MOST_FILES = 10


def carries(value: object, depth: int = 4) -> bool:
    """Return whether a value contains values of the row, however it is packed."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "i" and bool(np.isin(value, (KEY, TIME)).any())
    if isinstance(value, (pa.Array, pa.ChunkedArray)):
        whole = pa.types.is_int64(value.type) or pa.types.is_timestamp(value.type)
        return whole and carries(value.cast(pa.int64()).drop_null().to_numpy())
    if isinstance(value, (pa.Table, pa.RecordBatch)):
        return any(carries(column) for column in value.columns)
    if isinstance(value, int):
        return value == KEY
    if not depth:
        return False
    if is_dataclass(value):
        parts = [getattr(value, each.name, None) for each in fields(value)]
        return any(carries(part, depth - 1) for part in parts)
    if isinstance(value, Mapping):
        value = list(value.values())
    return isinstance(value, (list, tuple)) and any(carries(part, depth - 1) for part in value)


class Recording:
    """The calls of a push and a poll, and the files with functions that get or return the row."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.files: dict[str, str] = {}

    def note(self, frame: FrameType, event: str, returned: object) -> None:
        """Note a call, or a return or yield, of a function of the product."""
        code, path = frame.f_code, Path(frame.f_code.co_filename)
        if event not in {"call", "return"} or not path.is_relative_to(SOURCE):
            return
        file, values = str(path.relative_to(SOURCE)), [returned]
        if event == "call":
            self.calls.append((file, code.co_qualname))
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            values = [frame.f_locals[name] for name in names]
        if file not in self.files and any(map(carries, values)):
            self.files[file] = code.co_qualname


def record(rows: pa.Table | list[tuple[int, int]]) -> Recording:
    """Record how a row of stream B goes through a two-way equality join."""
    engine = muntin.Engine(clock=None)
    for name in "AB":
        engine.stream(name, {"k": "bigint", "ts": "timestamp"}, time="ts")
    query = engine.query("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 MINUTE")
    engine.push("A", [(KEY, TIME - 5)])
    recording = Recording()
    sys.setprofile(recording.note)
    try:
        engine.push("B", rows)
        engine.advance(TIME)
        found = query.poll()
    finally:
        sys.setprofile(None)
    assert found.column("k").to_pylist() == [KEY]
    return recording


ARROW = pa.table({"k": pa.array([KEY]), "ts": pa.array([TIME], pa.timestamp("us"))})
BOTH = pytest.mark.parametrize("rows", [ARROW, [(KEY, TIME)]], ids=["arrow", "python"])


@BOTH
def test_a_push_makes_the_calls_of_the_page_in_their_order(
    rows: pa.Table | list[tuple[int, int]],
) -> None:
    following = iter(record(rows).calls)
    for step in STEP.findall(section(PUSH)):
        assert step in following, f"{step} is not called, or not after the step before it"


@BOTH
def test_a_row_passes_the_files_of_the_page_and_no_others(
    rows: pa.Table | list[tuple[int, int]],
) -> None:
    text = section(PUSH)
    steps = [file for file, _ in STEP.findall(text)]
    beside = tuple(re.findall(r"^\| `([^`]+)` \| (?!`)", text, re.MULTILINE))
    assert beside, "the page names the files beside the path"
    passed = {
        file: function
        for file, function in record(rows).files.items()
        if not file.startswith((*beside, "testing/"))  # the checks of kernels that tests install
    }
    assert passed.keys() == set(steps), passed
    assert len(steps) == len(set(steps)) <= MOST_FILES


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ([(KEY, 0)], True),
        ({"B": Batch(ARROW, np.array([0]), np.array([0.0]))}, True),
        (NewRows(np.array([0]), Batch(ARROW.slice(1), np.array([TIME]), np.array([0.0])), 0), True),
        (NewRows(np.array([0]), Batch(ARROW.slice(1), np.array([8]), np.array([0.0])), 0), False),
        ((TIME, "a frontier is no row"), False),
    ],
)
def test_the_row_is_recognized_in_whatever_it_is_packed(
    value: object,
    found: bool,  # noqa: FBT001
) -> None:
    assert carries(value) is found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_about_the_code_name_files_that_exist(page: Path) -> None:
    names = set(re.findall(r"`([\w./-]+\.(?:py|sh))`", page.read_text(encoding="utf-8")))
    for name in names - HISTORY:
        if "NAME" not in name and "/" in name:
            assert (SOURCE / name).is_file() or (ROOT / name).is_file(), name
