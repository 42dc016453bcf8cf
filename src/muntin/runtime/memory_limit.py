"""The setting ``memory_limit``: rows are refused when the state would exceed a number of bytes.

Counted are the rows in logs and those that wait, the state of joins, and that of the operators
above them. New rows count with their columns, once for each group that reads them. What joins and
operators make of them counts when it is there, so the state exceeds the limit by at most what one
push adds beside its rows: stores grow by up to their size at once.
"""

from __future__ import annotations

from collections import Counter

from muntin.errors import MemoryLimitError
from muntin.model.settings.values import format_bytes
from muntin.runtime.dataflow import Dataflow
from muntin.runtime.query_group import QueryGroup
from muntin.runtime.stream_input import StreamInput


def check_memory(dataflow: Dataflow, limit: int | None, stream: str, nbytes: int) -> None:
    """Raise if bytes of rows do not fit into the memory that is left; nothing has changed then.

    Rows in the logs that no window reaches are released before they count against new ones.
    """
    if limit is None:
        return
    added = nbytes * len(dataflow.groups.readers(stream))
    if added + sum(bytes_by_holder(dataflow).values()) <= limit:
        return
    dataflow.groups.trim(exactly=True)
    held = bytes_by_holder(dataflow)
    if added + held.total() <= limit:
        return
    holder, most = max(held.items(), key=lambda item: item[1], default=("", 0))
    largest = f", of which {holder} holds most, {format_bytes(most)}" if most else ""
    waiting = holder.startswith("stream")
    remedy = (
        "Its rows wait for other streams: push there or advance time"
        if waiting
        else "Advance time so that rows leave its windows, make them smaller, or drop it"
    )
    raise MemoryLimitError(
        f"a push of {format_bytes(nbytes)} to stream {stream} was refused, because "
        f"memory_limit is {format_bytes(limit)} and the engine holds "
        f"{format_bytes(held.total())}{largest}",
        hint=f"{remedy}; or set memory_limit to more. Then push the rows again"
        if most
        else "Push fewer rows at once, or set memory_limit to more",
    )


def bytes_by_holder(dataflow: Dataflow) -> Counter[str]:
    """Return the bytes of state by the query that needs them, or by the stream whose rows wait."""
    held: Counter[str] = Counter()
    for group in dataflow.groups:
        for each in group.inputs.values():
            held[f"stream {each.stream.name}"] += each.bytes_waiting()
            held[_reader(group, each)] += each.log.nbytes()
        for join in group.joins.running:
            held[f"query {join.members[0].owner}"] += join.nbytes()
        for pipeline in group.pipelines:
            held[f"query {pipeline.query.name}"] += pipeline.nbytes()
    return held


def _reader(group: QueryGroup, each: StreamInput) -> str:
    """Return the query whose windows reach furthest into the log of a stream."""
    joins = [join for join in group.joins.running if join.retention.reads(each)]
    if not joins:
        return f"stream {each.stream.name}"
    return f"query {min(joins, key=lambda join: join.retention.needs(each)).members[0].owner}"
