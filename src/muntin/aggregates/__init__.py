"""Aggregate functions, one file each: names, types, state, results, partial results, an example.

To add one, add a file that defines ``FUNCTION``; nothing else needs to know. A function declares
what has to be kept of its argument (:mod:`muntin.aggregates.function`) and how its value follows from
that. Adding and removing rows, sharing state between the aggregates over one argument, and DISTINCT
are the business of :mod:`muntin.operators.aggregates`.
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
    """Return every aggregate function under its name, in the order of the names."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    functions = [module.FUNCTION for module in modules if hasattr(module, "FUNCTION")]
    return {function.name: function for function in functions}


@cache
def _by_spelling() -> Mapping[str, AggregateFunction]:
    functions = aggregate_functions().values()
    return {spelling: function for function in functions for spelling in function.spellings}


def function_called(spelling: str) -> AggregateFunction | None:
    """Return the function with a name or alias in lower case, if there is one.

    >>> function_called("mean").name
    'avg'
    """
    return _by_spelling().get(spelling)
