"""EMIT FINAL: the last answer of each window, which is what leaves when the window ends.

So the rows of the query need a column that tells the end of the window of the rows of streams
below, and these must stay until then. Other queries are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from muntin.errors import SqlError
from muntin.model.catalog import Catalog
from muntin.model.clock import format_interval
from muntin.model.window import TimeWindow
from muntin.plan.asof_join import AsofJoin
from muntin.plan.expression import Expression
from muntin.plan.node import Node
from muntin.plan.nodes import Join, Scan
from muntin.plan.query import Query, WindowEnd
from muntin.plan.semi_join import SemiJoin
from muntin.plan.sessions import SessionEnds, SessionWindows
from muntin.plan.top_n import TopN
from muntin.plan.window_functions import WindowFunctions
from muntin.sql.lexer import Tokens, word
from muntin.sql.scope import describe
from muntin.sql.window_lineage import ends_of, showing_end


def with_window_end(query: Query, catalog: Catalog, tokens: Tokens) -> Query:
    """Return a query with EMIT FINAL with the column that tells when its rows are final."""
    if query.every is not None:
        fact = "EMIT FINAL emits when windows end, and EVERY at its own instants"
        raise _error(tokens, fact, "Leave EVERY out")
    checks = _Checks(catalog, tokens)
    checks.check_windows(query.root)
    for node in query.root.walk():
        if isinstance(node, (Join, SemiJoin)):
            checks.check_join(node)
        elif isinstance(node, AsofJoin):
            fact = "EMIT FINAL over ASOF JOIN is not supported"
            raise _error(tokens, fact, "Use EMIT CHANGES")
        elif isinstance(node, (TopN, WindowFunctions)):
            checks.check_order(node)
    root = showing_end(query.root, catalog)
    ends = ends_of(root, catalog)
    if not ends:
        fact = "EMIT FINAL needs the end of the window of each row"
        hint = "Add window_end to the select list, and to GROUP BY if there is one"
        raise _error(tokens, fact, hint)
    place = min(ends)
    hidden = len(root.schema) - len(query.root.schema)
    root = root.transform(_final)
    return replace(query, root=root, hidden=hidden, closes=WindowEnd(place, ends[place]))


class _Checks:
    """Refuses nodes of which some rows leave before their window ends."""

    def __init__(self, catalog: Catalog, tokens: Tokens) -> None:
        self._catalog = catalog
        self._tokens = tokens

    def check_windows(self, root: Node) -> None:
        """Raise unless rows of streams stay until windows end."""
        if not set(_windows(root)):
            fact = "EMIT FINAL needs windows that end, and the query reads none"
            raise _error(self._tokens, fact, "Read TUMBLE(stream, 10 SECONDS)")
        for scan in root.walk():
            if isinstance(scan, Scan) and not scan.stored and not _stays(scan):
                fact = f"EMIT FINAL: rows of {describe(scan)} leave before windows end"
                hint = f"Write TUMBLE({scan.relation}, 10 SECONDS) AS {scan.alias}"
                raise _error(self._tokens, fact, hint)

    def check_join(self, node: Join | SemiJoin) -> None:
        """Raise if rows of windows that end at different instants may be joined."""
        windows = set(_windows(node))
        if (
            len(windows) > 1
            and any(one.session for one in windows)
            and not all(one.session for one in windows)
        ):
            fact = "EMIT FINAL: sessions are joined with other windows, which do not end together"
            raise _error(self._tokens, fact, "Join sessions with sessions")
        sizes = sorted({one.size for one in windows if not one.session})
        if len(sizes) > 1:
            both = " and ".join(map(format_interval, sizes))
            fact = f"EMIT FINAL: windows of {both} are joined, which do not end together"
            raise _error(self._tokens, fact, "Join windows of one size")
        if len(windows) > 1 and not self._links_all(node):
            fact = "EMIT FINAL: rows of windows that end at different instants are joined"
            raise _error(self._tokens, fact, "Add a.window_end = b.window_end to the condition")

    def check_order(self, node: TopN | WindowFunctions) -> None:
        """Raise if rows of several windows are put in order together."""
        ends = ends_of(node.input, self._catalog)
        windows = set(_windows(node))
        several = len(windows) > 1 or any(one.session for one in windows)
        if several and not ends.keys() & set(node.keys):
            fact = "EMIT FINAL: the first rows are taken of windows that overlap"
            hint = "Use QUALIFY ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY ...) <= n"
            if isinstance(node, WindowFunctions):
                fact = "EMIT FINAL: window functions are over windows that overlap"
                hint = "Write OVER (PARTITION BY window_end ...)"
            raise _error(self._tokens, fact, hint)

    def _links_all(self, node: Join | SemiJoin) -> bool:
        """Return whether equalities of ends connect all inputs with windows."""
        rest = {at for at, each in enumerate(node.children) if set(_windows(each))}
        linked = {min(rest, default=0)}
        pairs = [{left, right} for left, right in self._linked(node)]
        for _ in rest:
            for pair in pairs:
                linked |= pair if pair & linked else set()
        return rest <= linked

    def _linked(self, node: Join | SemiJoin) -> Iterator[tuple[int, int]]:
        """Yield the pairs of inputs of which an equality compares the ends."""
        if isinstance(node, SemiJoin):
            for key in node.keys:
                if self._tells(key.left, node.left) and self._tells(key.right, node.right):
                    yield 0, 1
            return
        for predicate in (*node.on, *node.where):
            found = predicate.comparison
            if found is None or found.operator != "=":
                continue
            left, right = found.left.column, found.right.column
            if (
                left is not None
                and right is not None
                and self._tells(found.left, node.sources[left.source])
                and self._tells(found.right, node.sources[right.source])
            ):
                yield left.source, right.source

    def _tells(self, expression: Expression, node: Node) -> bool:
        """Return whether an expression over an input is the end or the start of its window."""
        column = expression.column
        names = node.schema.names
        return column is not None and names.index(column.column) in ends_of(node, self._catalog)


def _error(tokens: Tokens, fact: str, hint: str) -> SqlError:
    """Return an error at EMIT."""
    where = next(token for token in reversed(list(tokens)) if word(token) == "EMIT")
    return tokens.error(where, fact, hint)


def _stays(scan: Scan) -> bool:
    """Return whether rows stay until their window ends, or longer."""
    window = scan.window
    return isinstance(window, TimeWindow) and (
        window.phase is not None or window.session or (window.is_landmark and window.until is None)
    )


class _Windows(NamedTuple):
    """The windows of a stream: size and phase, or the window join below of its sessions."""

    size: int
    phase: int
    session: str = ""


def _windows(node: Node) -> Iterator[_Windows]:
    """Yield the windows below a node."""
    for each in node.walk():
        window = each.window if isinstance(each, Scan) else None
        if isinstance(window, TimeWindow) and window.phase is not None:
            yield _Windows(window.micros, window.phase)
        elif isinstance(each, SessionWindows):
            assert isinstance(each.input, Join), "sessions are over the rows of a stream"
            yield _Windows(each.gap, 0, each.input.name)


def _final(node: Node) -> Node:
    """Return sessions whose rows are present only just before the end; other nodes as they are."""
    return replace(node, ends=SessionEnds.FINAL) if isinstance(node, SessionWindows) else node
