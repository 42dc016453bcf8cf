"""The arrays that kernels take, grouped into named tuples.

Numba passes a named tuple as its fields, so inside a kernel a group costs nothing. Whoever owns the
arrays builds the tuple once and builds it again when it replaces one of them. The annotation of a
field is also the type that a kernel is compiled for (:mod:`muntin.kernels.jit`): all arrays are
contiguous, in C order. :mod:`muntin.kernels.layout` defines what the numbers in them mean.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt

Integers = Annotated[npt.NDArray[np.int64], 1]
Halves = Annotated[npt.NDArray[np.int32], 1]
Bytes = Annotated[npt.NDArray[np.uint8], 1]
HalfTable = Annotated[npt.NDArray[np.int32], 2]
Octets = Annotated[npt.NDArray[np.int8], 1]
RealTable = Annotated[npt.NDArray[np.float64], 2]
Reals = Annotated[npt.NDArray[np.float64], 1]
Flags = Annotated[npt.NDArray[np.bool_], 1]
Table = Annotated[npt.NDArray[np.int64], 2]


class Arena(NamedTuple):
    """The stores of a join: ``halves`` is a view of ``words``; a row per store and per index."""

    words: Integers
    halves: Halves
    stores: Table
    indexes: Table
    first_index: Integers


class Program(NamedTuple):
    """Join orders, or the paths up a tree: for every origin as many steps of ``stride`` numbers."""

    flat: Integers
    stride: int


class EventArrays(NamedTuple):
    """Events in total order.

    For each its source, the offset of its row in ``incoming`` (-1: none), its time, how many rows
    each source's stream has with it (one row if no window counts), and the position it pushes out.
    """

    sources: Halves
    offsets: Integers
    times: Integers
    counts: Table
    pushed: Integers
    incoming: Integers


class Span(NamedTuple):
    """The events of a call: from ``start`` to ``stop - 1``, or until ``enough`` results wait.

    ``resume`` is what the last call returned: 1 if the row of ``start`` is in its store already.
    """

    start: int
    stop: int
    resume: int
    enough: int


class Output(NamedTuple):
    """Where a kernel writes: a column per result, counters, and memory that means nothing later."""

    out: Table
    counters: Integers
    scratch: Integers


class TreeNodes(NamedTuple):
    """The partial matches of a join tree: a row per node, their members, and their chains."""

    nodes: Table
    members: Integers
    links: Halves


class BudgetArrays(NamedTuple):
    """The counts of each half join, those of the cycle, and the freshness of each source."""

    half_joins: Table
    cycles: Integers
    freshness: Table


class LevelArrays(NamedTuple):
    """The levels of a shared join; see :class:`muntin.schedule.levels.Levels`."""

    edges: Table
    sizes: Table
    tables: Integers
    reach: Table
    served: Integers
    best: HalfTable
    quotients: RealTable


class QueueArrays(NamedTuple):
    """The work of a shared join; see :mod:`muntin.kernels.scheduler_state`."""

    state: Integers
    done: Integers
    links: Table
    given: Integers
    chosen: Octets
    outers: Table
    bases: Table
    bounds: Table
    pool: Table


class GroupArrays(NamedTuple):
    """Groups known by two words each, linked by bucket; see :mod:`muntin.kernels.group_ids`."""

    heads: Integers
    lows: Integers
    highs: Integers
    links: Integers
    meta: Integers


class SlotArrays(NamedTuple):
    """A batch of changes by group; see :class:`muntin.state.group_table.Slots`."""

    groups: Integers
    run_rows: Integers
    run_slots: Integers
    slot_groups: Integers


class ListArrays(NamedTuple):
    """Linked lists of rows per group: their first and last places, the places, and free ones."""

    ends: Table
    nodes: Table
    meta: Integers


class Walk(NamedTuple):
    """Scratch of a walk along a join order, inside a kernel.

    Addresses of the rows bound so far, per step the next candidate and the newest live row it has
    met, and per store the number below which rows count and the limit above which they are alive.
    """

    bound: Integers
    cursor: Integers
    newest: Integers
    bounds: Integers
    limits: Integers


class Stamp(NamedTuple):
    """What a result begins with: its event, complemented for a retraction, and its time."""

    tag: int
    time: int


class Arrived(NamedTuple):
    """New rows of a store, ``low`` to ``high - 1``.

    ``events[first + seq - low]`` is a row's event.
    """

    low: int
    high: int
    events: Integers
    first: int
