"""The numbers in the arrays of a shared join, on which :mod:`muntin.kernels.shared_join` works.

A new row that looks for partners is an *outer* row. Outer rows are numbered in their total order.
Windows of queries are *levels*, ordered from small to large. ``done[0]`` outer rows have been
taken, ``done[l + 1]`` of them have finished level ``l``. As no row overtakes an older one, the rows
from ``done[l + 1]`` up to ``done[l]`` are the queue of level ``l``. Queues that are not empty are
chained from small to large by ``links`` (row 0 to the next larger, row 1 to the next smaller), with
the number of queues as both ends of the chain.

An outer row is eight words in a ring, a cache line. A pair that was found and is not yet released
to all levels waits in a pool; those of one outer row are in blocks, which are chained, in the order
in which they were found. In a join of more than two sources the pool has the nodes of search trees
(:mod:`muntin.kernels.search_tree`).
"""

from __future__ import annotations

# The three schedulers of [Hammad03].
LWO = 0
SWF = 1
MQT = 2

# The scheduler state: numbers that are kept from call to call.
SCHEDULER = 0
UNTIL = 1
"""The time at which to return, whatever is left to do."""
EVENT = 2
"""The next event to take."""
FOUND = 3
"""Results in ``out``."""
FREE = 4
"""The first of the free blocks, by the number of its first pair, or of the free nodes; -1: none."""
USED = 5
"""Places of the pool that were ever used."""
HELD = 6
MOST_HELD = 7
MOST_WAITING = 8
ENDING = 9
"""One more than the queue whose head has finished its level but not released all; 0 for none."""
CONTAINED = 10
"""Whether every level's windows contain those of the levels before it."""
NEED = 11
"""Results of the step that did not fit."""
APART = 12
"""Whether a result is written for each level apart, as in the paper; else for a run of levels."""
BUSY = 13
"""The queues that are not empty, as bits; of the first 63."""
STATE_FIELDS = 14

REMEMBERED = 12
"""The most levels with which MQT remembers its choice for each set of queues that are not empty."""

# Words of an outer row.
O_TIME = 0
O_OWN = 1
"""Sixteen times its number in its own store, plus its source."""
O_RESUME = 2
"""The next candidate: its number in the other store, -1 for none."""
O_ARRIVAL = 3
O_FIRST = 4
O_LAST = 5
O_POSITION = 6
O_CODE = 7
O_WORDS = 8
# With more than two sources.
O_ROOT = O_FIRST
"""The root of its search tree; negative: there is none."""
O_KEPT = O_LAST
"""Matches in its search tree."""

# Words of a pair. Pairs are in blocks, so that a walk over them is mostly sequential; the last
# place of a block is no pair, its first word is the number of the next block's first pair.
P_PARTNER = 0
P_DISTANCE = 1
P_WORDS = 2
BLOCK = 16

# Words of a node of a search tree: the next sibling (or the next free node), the first child, the
# next candidate to extend it by, its row by its number in its store, the last child, the number of
# its leaves. A block of leaves has the first three, no child and no candidate, then its rows.
T_NEXT = 0
T_FIRST = 1
T_RESUME = 2
T_ROW = 3
T_LAST = 4
T_COUNT = 5
T_LEAVES = 3
T_WORDS = 8
# Next candidates that are not a row: there is none (-1), the search has not begun, or the store has
# moved since ``STALE - T_RESUME`` was noted.
UNBEGUN = -2
STALE = -3

# Words of a result behind tag, time and positions: the levels that get the result, the arrival of
# the outer row, the time of the release.
R_FROM = 0
R_UNTIL = 1
R_ARRIVAL = 2
R_RELEASED = 3
R_ROWS = 4

# Why the kernel returned, besides DONE, FULL, GROW, OVERFLOW of the layout of stores.
MORE_ROWS = 5
MORE_PLACES = 6
PAUSED = 7
