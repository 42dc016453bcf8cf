"""What the console needs of an engine.

Everything that is returned is made of dicts, lists, texts and numbers that JSON can hold; only
results are Arrow tables. Calls come from threads of the console, and may wait for the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

OnResults: TypeAlias = Callable[[pa.Table], None]
"""Takes results of a query; returns at once, as it may be called inside the engine."""
Cancel: TypeAlias = Callable[[], None]
"""Ends the calls of an ``OnResults``."""


class ConsoleSource(Protocol):
    """An engine, as the console sees it."""

    kind: str
    """``"process"`` or ``"spark"``."""

    def snapshot(self) -> dict[str, Any]:
        """Return the counts of all streams and queries now.

        ``streams`` and ``queries`` are lists of dicts with a ``name``. Each query has ``rows_out``,
        and ``response``: percentiles of the response times since the previous snapshot.
        """

    def plans(self) -> list[dict[str, Any]]:
        """Return the plan of each query, as ``StandingQuery.plan`` does."""

    def details(self, name: str) -> dict[str, Any]:
        """Return the text (``sql``), columns and explanation (``explain``) of a query."""

    def relations(self) -> list[dict[str, Any]]:
        """Return the streams and tables that queries can read, with their columns and types."""

    def check(self, sql: str, name: str | None) -> None:
        """Raise what adding this query would raise; change nothing."""

    def add(self, sql: str, name: str | None) -> str:
        """Add a query and return its name."""

    def drop(self, name: str) -> None:
        """Drop a query."""

    def answer(self, name: str) -> pa.Table:
        """Return the answer of a query now; raise if the engine keeps none."""

    def tap(self, name: str, on_results: OnResults) -> Cancel:
        """Call a function with the results of a query from now on; polls still get them all."""


@dataclass(frozen=True)
class TextPage:
    """A page for programs, such as metrics: the type of its content, and a function that makes it.

    The function may wait for the engine.
    """

    content_type: str
    make: Callable[[], str]


TextPages: TypeAlias = Mapping[str, TextPage]
"""Pages by path, such as ``/metrics``."""

Rows: TypeAlias = list[Sequence[str | None]]
"""Rows as text, for a table in a browser."""
