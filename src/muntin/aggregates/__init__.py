"""Aggregate functions, one file each: names, types, state, results, partial results, an example.

To add one, add a file that defines ``FUNCTION``; nothing else changes. A function declares the
state that it needs of its argument (:mod:`muntin.aggregates.function`) and how its value is
computed from it. :mod:`muntin.operators.aggregates` adds and removes rows, shares state between the
aggregates over one argument, and implements DISTINCT.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from muntin.aggregates.function import AggregateFunction

__all__ = ["AggregateFunction", "aggregate_functions", "function_called"]


@cache
def aggregate_functions() -> Mapping[str, AggregateFunction]:
    """Return all aggregate functions by name, sorted by name."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    functions = [module.FUNCTION for module in modules if hasattr(module, "FUNCTION")]
    return {function.name: function for function in functions}


@cache
def _by_spelling() -> Mapping[str, AggregateFunction]:
    functions = aggregate_functions().values()
    return {spelling: function for function in functions for spelling in function.spellings}


def function_called(spelling: str) -> AggregateFunction | None:
    """Return the function with a name or alias, given in lower case; None if there is none.

    >>> function_called("mean").name
    'avg'
    """
    return _by_spelling().get(spelling)
