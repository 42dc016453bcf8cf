"""Every module imports, and every example in a docstring gives its documented output."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import benchmarks
import muntin

PEERS = Path(benchmarks.__file__).parent / "peers"
FOREIGN = sorted(PEERS / f"{pins.stem}.py" for pins in PEERS.glob("*.txt"))
"""Scripts that other systems run in environments of their own; their packages are not here."""
MODULES = [
    module.name
    for package in (muntin, benchmarks)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if module.name not in {f"benchmarks.peers.{path.stem}" for path in FOREIGN}
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_hold(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__, "every module has a docstring"
    outcome = doctest.testmod(module)
    assert outcome.failed == 0


@pytest.mark.parametrize("path", FOREIGN, ids=lambda path: path.stem)
def test_scripts_of_other_systems_have_docstrings(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text())), "every module has a docstring"
