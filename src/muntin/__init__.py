"""Muntin: continuous queries that join the windows of many streams, exactly.

>>> import muntin
>>> engine = muntin.Engine()
"""

from muntin.engine.engine import Engine
from muntin.engine.standing_query import StandingQuery
from muntin.errors import CatalogError, InputError, MuntinError, RunError, SettingError, SqlError, SubscriberError

__all__ = [
    "CatalogError",
    "Engine",
    "InputError",
    "MuntinError",
    "RunError",
    "SettingError",
    "SqlError",
    "StandingQuery",
    "SubscriberError",
    "__version__",
]

__version__ = "0.1.0"
