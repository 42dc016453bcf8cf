"""Muntin: continuous queries that join the windows of many streams, exactly.

>>> import muntin
>>> engine = muntin.Engine()
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from muntin.errors import (
    CatalogError,
    EvaluationError,
    FunctionError,
    InputError,
    MemoryLimitError,
    MuntinError,
    QuerySuspendedError,
    RunError,
    SettingError,
    SqlError,
    SubscriberError,
)
from muntin.model.printable import make_logs_printable

if TYPE_CHECKING:
    from muntin.engine.engine import Engine
    from muntin.engine.query_registry import StandingQuery

__all__ = [
    "CatalogError",
    "Engine",
    "EvaluationError",
    "FunctionError",
    "InputError",
    "MemoryLimitError",
    "MuntinError",
    "QuerySuspendedError",
    "RunError",
    "SettingError",
    "SqlError",
    "StandingQuery",
    "SubscriberError",
    "__version__",
]

__version__ = "0.2.0"

make_logs_printable()

_LATER = {"Engine": "muntin.engine.engine", "StandingQuery": "muntin.engine.query_registry"}


def __getattr__(name: str) -> object:
    """Import the engine on first use: many processes on Spark never need it."""
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
