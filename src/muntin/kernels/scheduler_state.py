"""Where things stand in the flat arrays of a scheduled join; :mod:`muntin.kernels.shared_join` works on them.

A new row that looks for partners is an *outer* row. Outer rows are numbered in their total order. Windows of queries are *levels*, ordered
from small to large. ``done[0]`` outer rows have been taken, ``done[l + 1]`` of them have finished level ``l``; as no row overtakes an
older one, the rows from ``done[l + 1]`` up to ``done[l]`` are the queue of level ``l``. Queues that are not empty are chained from small
to large by ``links`` (row 0 to the next larger, row 1 to the next smaller), with the number of queues as both ends of the chain.

An outer row is eight words in a ring, a cache line. A pair that was found and is not released to everyone yet waits in a pool; those of
one outer row stand in blocks, which are chained, in the order in which they were found.
"""

from __future__ import annotations

# The three schedulers of paper 1.
LWO = 0
SWF = 1
MQT = 2

# Clocks: one that moves by the costs of looking and finding; the machine's.
COUNTED = 0
MEASURED = 1

# The desk: numbers that a scheduler keeps from call to call.
SCHEDULER = 0
CLOCK = 1
NOW = 2
"""The counted clock; what is added to the measured one."""
UNTIL = 3
"""The moment at which to return, whatever is left to do."""
SLICE = 4
"""Candidates after which arrivals are looked at in the middle of a scan."""
PROBE_COST = 5
RESULT_COST = 6
EVENT = 7
"""The next event to take."""
FOUND = 8
"""Results in ``out``."""
TRACED = 9
FREE = 10
"""The first of the blocks that are free, by the number of its first pair, -1 for none."""
USED = 11
"""Places of the pool that were ever used."""
HELD = 12
MOST_HELD = 13
MOST_WAITING = 14
ENDING = 15
"""One more than the queue whose head has finished its level while its results are still being released; 0 for none."""
CONTAINED = 16
"""Whether every level's windows contain those of the levels before it."""
NEED = 17
WAITS = 18
"""Nanoseconds that rows waited from their arrival until they were taken: the longest."""
PUNCTUAL = 19
"""Whether rows come at their arrival on the clock, which is put forward when there is nothing to do; else all are here."""
IDLE = 20
"""What the clock was put forward by while there was nothing to do."""
GAP = 21
"""Nanoseconds between two looks at the machine's clock from which on they count as the machine's, not as work; 0 for never."""
SEEN = 22
"""The last look at the machine's clock, when there is a gap to look for."""
LOST = 23
"""Nanoseconds that were left out as gaps."""
APART = 24
"""Whether a result is written for each level apart, as the router of the paper does; else once for all that get it at once."""
SPEED = 25
"""How fast the clock goes when there is a gap to look for: so many of its units in ``1 << EVENLY`` nanoseconds of the machine's."""
SINCE = 26
"""The moment on the machine's clock when ours was at ``NOW``, when there is a gap to look for."""
BUSY = 27
"""The queues that are not empty, as bits; of the first 63."""
DESK = 28
EVENLY = 20

REMEMBERED = 12
"""Up to so many levels MQT remembers what it chose for each set of queues that are not empty."""

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

# Words of a pair. Pairs stand in blocks, so that whoever walks over them finds most behind one another; the last place of a block is
# no pair, its first word is the number of the next block's first pair.
P_PARTNER = 0
P_DISTANCE = 1
P_WORDS = 2
BLOCK = 16

# Words of a result behind tag, time and positions: the levels that get the result, arrival of the outer row, moment of the release.
R_FROM = 0
R_UNTIL = 1
R_ARRIVAL = 2
R_RELEASED = 3
R_ROWS = 4

# Columns of a trace: outer row, level, candidates, whether it finished, begin and end on the clock.
T_OUTER = 0
T_LEVEL = 1
T_LOOKED = 2
T_FINISHED = 3
T_BEGIN = 4
T_END = 5
T_COLUMNS = 6

# Why the kernel returned, besides DONE, FULL, GROW, OVERFLOW of the layout of stores.
MORE_ROWS = 5
MORE_PAIRS = 6
PAUSED = 7
