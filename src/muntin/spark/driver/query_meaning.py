"""What determines the results of a query, and what of it has changed since a checkpoint was made.

Two queries have equal results if they have the same text, apart from layout, the same settings on
which results depend, and call functions with the same code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from muntin.engine.declaration_checks import SINK_OPTIONS
from muntin.model.functions import FunctionSignature
from muntin.model.settings import Settings
from muntin.plan.query import Query
from muntin.planner.overload_plan import is_adapting
from muntin.spark.exchange.deployment import DeployedQuery, Deployment
from muntin.sql.equivalence import meaning, without_windows
from muntin.sql.python_functions import functions_called


def meaning_of(
    query: Query, settings: Settings, functions: Mapping[str, FunctionSignature] | None = None
) -> str:
    """Return a short text that is equal for queries with equal results."""
    parts: list[object] = [meaning(query.text), _decisive(settings)]
    called = functions_called(query.text, functions or {})
    parts += [[str(each), each.fingerprint] for each in called]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


def _decisive(settings: Settings) -> dict[str, str]:
    """Return the settings that determine the results and which rows a checkpoint holds."""
    changed = {name: text for name, text in settings.changed().items() if name != "weight"}
    if is_adapting(settings):
        return changed
    # Results are the same, but under `reevaluation` partition batches are retained for longer
    # (window_reach.py) and time alone causes other batches; so a run keeps the value it began with.
    return {
        name: changed[name]
        for name in ("algorithm", "reevaluation")
        if settings.join.reevaluation and name in changed
    }


def changes_of(before: DeployedQuery, now: DeployedQuery, declared: Deployment) -> str:
    """Return what has changed of a query; empty if nothing has."""
    if before.meaning == now.meaning:
        return ""
    bound = declared.bind(before), declared.bind(now)
    found = []
    if meaning(before.sql) != meaning(now.sql):
        found.append(_windows(*bound) if _is_about_windows(before, now) else "its text")
    settings = [
        _decisive(Settings.of(**deployed.settings).of_query(query.options, SINK_OPTIONS))
        for deployed, query in zip((before, now), bound, strict=True)
    ]
    for name in sorted({*settings[0], *settings[1]}):
        values = [repr(one[name]) if name in one else "the default" for one in settings]
        if values[0] != values[1]:
            found.append(f"the setting {name}, which was {values[0]} and is {values[1]}")
    called = functions_called(now.sql, declared.catalog().functions)
    if called and not found:
        return f"the code of {', '.join(each.name for each in called)}"
    return " and ".join(found) or "a setting that determines its results"


def _is_about_windows(before: DeployedQuery, now: DeployedQuery) -> bool:
    return without_windows(before.sql) == without_windows(now.sql)


def _windows(before: Query, now: Query) -> str:
    """Return how the windows of two queries over the same sources differ."""
    pairs = zip(before.sources, now.sources, strict=True)
    found = [
        f"{old.alias} {old.window} is now {new.window}"
        for old, new in pairs
        if old.window != new.window
    ]
    return f"its windows: {', '.join(found)}" if found else "the text of its windows"
