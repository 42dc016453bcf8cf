"""The plans of all queries as one graph: relations, joins, operators and queries.

A join that several queries share is one node, and so is an operator that is shared. The console
draws it from left to right; ``layer`` is the column of a node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from muntin.console.rows import shown

_INPUTS = ("operators", "sources")


@dataclass
class GraphNode:
    """A node: its kind, label, further lines, and the queries that it works for."""

    id: str
    kind: str
    label: str
    lines: list[str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    layer: int = 0
    rows_held: int | None = None


class Graph:
    """Nodes by id, and edges as pairs of ids."""

    def __init__(self, plans: Iterable[Mapping[str, Any]]) -> None:
        self.nodes: dict[str, GraphNode] = {}
        self.edges: dict[tuple[str, str], None] = {}
        for plan in plans:
            self._add_query(plan)

    def to_dict(self) -> dict[str, Any]:
        """Return the nodes and edges for JSON."""
        return {
            "nodes": [asdict(node) for node in self.nodes.values()],
            "edges": [list(edge) for edge in self.edges],
        }

    def _add_query(self, plan: Mapping[str, Any]) -> None:
        name = str(plan["query"])
        inputs = (
            [self._part(plan, name, "join")]
            if plan.get("sources")
            else [
                self._part(each, name, f"{name}/{place}")
                for place, each in enumerate(plan.get("operators", ()))
            ]
        )
        emits = f"emits {plan.get('emit', 'results')}"
        self._put(GraphNode(f"query:{name}", "query", name, [emits]), name, inputs)

    def _part(self, plan: Mapping[str, Any], query: str, path: str) -> str:
        """Add what a query reads, an operator or a join, and return the id of its node."""
        if plan.get("sources"):
            return self._join(plan, query)
        inputs = [
            self._part(each, query, f"{path}/{place}")
            for place, each in enumerate(plan.get("operators", ()))
        ]
        if not inputs and plan.get("relation"):
            return self._relation(str(plan["relation"]), query, stored=True)
        lines = [_line(key, value) for key, value in plan.items() if _is_shown(key, value)]
        label = str(plan.get("operator", "operator"))
        own = f"{label}:{'|'.join(inputs)}:{lines}" if plan.get("shared") else path
        node = GraphNode(f"operator:{own}", "operator", label, lines)
        node.rows_held = plan.get("entries")
        return self._put(node, query, inputs)

    def _join(self, plan: Mapping[str, Any], query: str) -> str:
        sources = plan["sources"]
        inputs = [
            self._relation(str(each["relation"]), query, stored=bool(each["stored"]))
            for each in sources
        ]
        members = plan.get("sharing_group", {}).get("queries", [plan["query"]])
        join = plan.get("join") or {}
        lines = [f"{each['alias']} {each['window']}" for each in sources if not each["stored"]]
        filters = [
            f"filter {each['condition']}" for one in sources for each in one.get("filters", ())
        ]
        facts = [str(join[key]) for key in ("method", "algorithm") if join.get(key)]
        label = " ⋈ ".join(str(each["alias"]) for each in sources)
        kind = "join" if len(sources) > 1 else "window"
        node = GraphNode(
            f"join:{'|'.join(sorted(map(str, members)))}",
            kind,
            label if kind == "join" else f"window of {label}",
            [text for text in (", ".join(facts), *lines, *filters) if text],
        )
        held = [each["rows_held"] for each in sources if each.get("rows_held") is not None]
        node.rows_held = sum(held) if held else None
        return self._put(node, query, inputs)

    def _relation(self, name: str, query: str, *, stored: bool) -> str:
        kind = "table" if stored else "stream"
        return self._put(GraphNode(f"{kind}:{name}", kind, name), query, [])

    def _put(self, node: GraphNode, query: str, inputs: Iterable[str]) -> str:
        """Add a node unless it is there, right of its inputs, as a part of a query."""
        kept = self.nodes.setdefault(node.id, node)
        if query not in kept.queries:
            kept.queries.append(query)
        for each in inputs:
            self.edges[each, kept.id] = None
            kept.layer = max(kept.layer, self.nodes[each].layer + 1)
        return kept.id


def _is_shown(key: str, value: object) -> bool:
    return key not in {"operator", "operators", "entries", "shared", "columns"} and bool(value)


def _line(key: str, value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return shown(f"{key.replace('_', ' ')}: {text}") or ""
