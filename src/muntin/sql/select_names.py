"""The selects that FROM can read by name: those of WITH, and views and queries of the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from muntin.model.catalog import Catalog, View
from muntin.model.window import Unbounded
from muntin.plan.node import Node
from muntin.plan.nodes import Scan
from muntin.sql.shape import FromEntry

_SELF: Node = Scan("", "", stored=True, window=Unbounded(), schema=pa.schema([]))
"""Stands for a select of WITH while it is bound, if nothing else has its name."""


@dataclass(frozen=True)
class SelectNames:
    """The selects of WITH that can be seen at one place; ``reads`` collects the views read."""

    selects: Mapping[str, Node] = field(default_factory=dict)
    reads: dict[str, View] = field(default_factory=dict)

    def having(self, name: str, node: Node) -> SelectNames:
        """Return these names and one more, which hides another one like it."""
        return replace(self, selects={**self.selects, name.casefold(): node})

    def within(self, name: str, catalog: Catalog) -> SelectNames:
        """Return the names that the select of that name sees itself."""
        hidden = name.casefold() in self.selects or _is_known(name, catalog)
        return self if hidden else self.having(name, _SELF)

    def find(self, entry: FromEntry, own: str, catalog: Catalog) -> Node | View | None:
        """Return what an entry of FROM reads by name; raise if that is the select it is in.

        ``own`` is the name of the query or view that is being bound.
        """
        name = entry.tokens[0].text if len(entry.tokens) else ""
        found = self.selects.get(name.casefold()) or catalog.find_view(name)
        is_own = name.casefold() == own.casefold() and not _is_known(name, catalog)
        if found is _SELF or (found is None and is_own):
            hint = "Select from streams, tables and what is defined before it"
            raise entry.tokens.error(entry.tokens[0], f"{name} reads itself", hint)
        if found is not None and entry.window is not None:
            fact = f"{name} cannot have a window here: its rows are an answer, not a stream"
            hint = "Remove the brackets; give windows to the streams inside it"
            raise entry.window.error(entry.window[0], fact, hint)
        return found


def _is_known(name: str, catalog: Catalog) -> bool:
    return catalog.find(name) is not None or catalog.find_view(name) is not None
