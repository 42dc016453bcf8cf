"""Every module imports, and every example in a docstring gives what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import muntin

MODULES = [module.name for module in pkgutil.walk_packages(muntin.__path__, "muntin.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_hold(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__, "every module says what lives there"
    outcome = doctest.testmod(module)
    assert outcome.failed == 0
