"""The groups of a dataflow: which queries advance together, and which rows each group gets.

Queries that read the same streams are in one group. A new query opens another group for the same
streams only where the windows of others hold rows that it needs and its own group does not. Streams
that no query reads are in idle groups: one for all of them while there is no query, so that rows
pushed before the first query wait for each other; otherwise one per stream, so that an unread
stream neither delays others nor is delayed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from muntin.expressions.duck import Duck
from muntin.model.catalog import Stream
from muntin.model.clock import BEFORE_ALL
from muntin.plan.nodes import Scan
from muntin.plan.query import Query
from muntin.runtime.query_group import NOWHERE, Promise, QueryGroup
from muntin.runtime.stream_input import Place, StreamInput, StreamState, least_watermark


class QueryGroups:
    """All streams and groups of a dataflow; ``single``: one group for all queries."""

    def __init__(self, duck: Duck, tables: Mapping[str, pa.Table], *, single: bool) -> None:
        self.streams: dict[str, StreamState] = {}
        self.active: list[QueryGroup] = []
        self.single = single
        self._duck = duck
        self._tables = tables
        self.advanced = BEFORE_ALL
        self.fed = NOWHERE
        self._idle = [self._open(())]

    def __iter__(self) -> Iterator[QueryGroup]:
        """Iterate over all groups, also those without queries."""
        return iter((*self.active, *self._idle))

    @property
    def all_streams(self) -> QueryGroup:
        """Return the only group, where there is a single one."""
        assert self.single, "there is one group"
        return self._idle[0]

    def _open(self, inputs: Iterable[StreamInput], final: Place = NOWHERE) -> QueryGroup:
        return QueryGroup(
            inputs, self._duck, self._tables, Promise(self.advanced, max(final, self.fed))
        )

    def readers(self, stream: str) -> list[QueryGroup]:
        """Return the groups that get the rows of a stream."""
        return [group for group in self if stream in group.inputs]

    # -- streams -----------------------------------------------------------------------------------

    def declare(self, stream: Stream, now: int | None) -> None:
        """Add a stream; ``now`` is the clock, to compare its first time with."""
        state = self.streams[stream.name] = StreamState(stream, now)
        if self.active:
            self._idle.append(self._open([StreamInput(state)]))
        else:
            self._idle[0].inputs[stream.name] = StreamInput(state)

    def remove(self, stream: str) -> None:
        """Remove a stream that no query reads."""
        del self.streams[stream]
        for group in self._idle:
            group.inputs.pop(stream, None)

    def inputs(self, stream: str) -> list[StreamInput]:
        """Return the inputs of all groups that get the rows of a stream."""
        return [group.inputs[stream] for group in self.readers(stream)]

    def reopen(self, groups: Iterable[tuple[Iterable[StreamInput], bool]], fed: Promise) -> None:
        """Open all groups of a snapshot without rows, each with its inputs; True: it has queries.

        ``fed`` is the frontier of groups that are opened later.
        """
        self.active, self._idle = [], []
        for inputs, active in groups:
            group = QueryGroup(inputs, self._duck, self._tables, Promise())
            (self.active if active else self._idle).append(group)
        self.advanced, self.fed = fed.advanced, fed.final

    # -- time --------------------------------------------------------------------------------------

    def move(self, final: Place | None, advanced: int) -> None:
        """Move all groups, and those opened later, to a place; None: to their watermarks.

        ``advanced`` promises that no earlier row comes on any stream.
        """
        self.advanced = max(self.advanced, advanced)
        self.fed = max(self.fed, final or NOWHERE)
        for group in self:
            group.move(final, advanced)

    def frontier(self) -> Place:
        """Return the least frontier of all groups that have queries."""
        return min((group.frontier for group in self.active or self._idle), default=NOWHERE)

    def trim(self, *, exactly: bool = False) -> None:
        """Release rows that no window reaches any more."""
        for group in self:
            group.trim(exactly=exactly)

    # -- queries -----------------------------------------------------------------------------------

    def place(self, query: Query) -> QueryGroup:
        """Return the group of a new query: a running one with all rows it needs, or a new one."""
        if self.single:
            return self.all_streams
        sources = [source for source in query.sources if not source.stored]
        read = {source.relation for source in sources}
        for group in self.active:
            if group.inputs.keys() == read and not any(
                self._lacks(group, source) for source in sources
            ):
                return group
        group = self._opened(read)
        self.active.append(group)
        self._settle_idle()
        return group

    def _lacks(self, group: QueryGroup, source: Scan) -> bool:
        """Return whether another group holds more of the rows that a new query's window reaches."""
        own, now = group.inputs[source.relation], group.frontier[0]
        others = self.inputs(source.relation)
        return any(own.lacks(each, source.window, now) for each in others if each is not own)

    def _opened(self, read: Iterable[str]) -> QueryGroup:
        """Open a group at the least watermark of its streams, with all rows in any group."""
        states = [state for name, state in self.streams.items() if name in read]
        group = self._open((), least_watermark(states))
        held = [max(self.inputs(state.stream.name), key=StreamInput.held_after) for state in states]
        group.inputs = {each.stream.name: each.continued(group.frontier) for each in held}
        return group

    def tidy(self) -> None:
        """Close groups without queries."""
        if not self.single and not all(group.joins.running for group in self.active):
            closed = [group for group in self.active if not group.joins.running]
            self.active = [group for group in self.active if group.joins.running]
            self._idle += closed
            self._settle_idle()

    def _settle_idle(self) -> None:
        """Put the streams that no query reads into idle groups."""
        read = {name for group in self.active for name in group.inputs}
        unread = [name for name in self.streams if name not in read]
        wanted = [[name] for name in unread] if self.active else [unread]
        self._idle = [self._opened(names) for names in wanted]
