"""Where things stand in the flat arrays of a join's state.

The state of one join is an arena: one array of 64-bit words, also seen as an array of 32-bit
halves. For every store (one per entry of FROM) it holds a ring of rows and the bucket heads of the
store's indexes. A row is ``WIDTH`` words:

======  =======================================================================
word    meaning
======  =======================================================================
0       coordinate: the time of the row, or its position in a count window
1       low half: position in the stream (low 32 bits); high half: link, index 0
2 ...   codes: integers that stand for key values (equal iff the values may be)
then    ``END``: stream count at which a partitioned window pushed the row out
then    links of further indexes and the forward link, two to a word
======  =======================================================================

Rows have absolute sequence numbers; a ring holds ``TAIL <= seq < NEXT``, the row ``TAIL`` at slot
``TAIL_SLOT``. A link is the distance back to the previous row of the same bucket, 0 for none; a
head is the low 31 bits of the newest row's sequence number plus one, 0 for none (a ring has fewer rows than that). Whatever leads below
``TAIL`` is dead, which is why expiry deletes nothing: a link is only ever followed towards older
rows, and a row that was overwritten has a sequence number below ``TAIL``.

Heads of an index stand ``HEAD_STEP`` halves apart. When all stores have one index on the same key, the heads of a
bucket stand side by side: a new row changes one and reads the others, and finds them in one cache line.
"""

from __future__ import annotations

# Words of a row.
COORD = 0
PLACE = 1
CODES = 2
# Halves of a row.
POSITION = 2
LINK0 = 3

# Fields of a store (one row of the table of stores).
ROWS = 0
WIDTH = 1
CAP = 2
TAIL = 3
TAIL_SLOT = 4
NEXT = 5
KIND = 6
SIZE = 7
END = 8
STREAM = 9
LAST = 10
PRIMARY = 11
FORWARD = 12
HELD = 13
PEAK = 14
STORE_FIELDS = 16

# Kinds of window.
TIME = 0
COUNT = 1
PARTITIONED = 2
STORED = 3

# Fields of an index (one row of the table of indexes). Its code columns follow from KEYS on.
OWNER = 0
HEADS = 1
BUCKETS = 2
LINK = 3
MODULAR = 4
OLDEST = 5
HEAD_STEP = 6
KEY_COUNT = 7
KEYS = 8

# A step of a join order (one row of the program of an origin): a store to look into, the index to
# use (-1: scan), who supplies each key of that index, then checks of codes against bound rows.
STEP_STORE = 0
STEP_INDEX = 1
STEP_KEYS = 2
STEP_CHECKS = 3
STEP_SAME_LATER = 4
STEP_ARGUMENTS = 5
# Arguments: STEP_KEYS pairs (store, word), then STEP_CHECKS quadruples (operator, own word, store, word).

EQ = 0
NE = 1
LT = 2
LE = 3
GT = 4
GE = 5

# A level of a climb through a tree (one row of the program of a leaf): the sibling (a store, or the number of stores plus a
# node), its index if it is a store, who supplies each key, checks, and the node that keeps what was found (-1: a result).
CLIMB_NODE = 0
CLIMB_INDEX = 1
CLIMB_KEYS = 2
CLIMB_CHECKS = 3
CLIMB_PARENT = 4
CLIMB_ARGUMENTS = 5
# Arguments: CLIMB_KEYS pairs (store, word), then CLIMB_CHECKS quintuples (operator, own store, own word, store, word).

# Fields of a node that keeps composites. From NODE_SOURCES on: a place for each store of the tree, of which the first WIDTH
# name the sources of a composite's members; then KEY_COUNT pairs (member, word).
NODE_MEMBERS = 0
NODE_WIDTH = 1
NODE_CAP = 2
NODE_USED = 3
NODE_LINKS = 4
NODE_HEADS = 5
NODE_BUCKETS = 6
NODE_KEY_COUNT = 7
NODE_SOURCES = 8

# Expiry policies.
OWN = 0
EAGER = 1
LAZY = 2
PROBE = 3
PROBE_INSERT = 4
PROBE_ALL = 5
ALL = 6

# Counters.
N_PROBES = 0
N_SCANNED = 1
N_COMPARED = 2
N_STALE = 3
N_INSERTED = 4
N_EXPIRED = 5
N_EXPIRY_CHECKS = 6
N_RESULTS = 7
N_RETRACTED = 8
N_COMPOSITES = 9
COUNTERS = 10

# Scratch space of a kernel besides five numbers a store: two counts, the counters, the pipe of prefetches.
SCRATCH = 2 + COUNTERS + 128

# Why a kernel returned.
DONE = 0
FULL = 1
GROW = 2
OVERFLOW = 3
WIDEN = 4

# Value of ``resume`` that makes join_interval insert without joining.
SILENT = 2

NEVER = 2**63 - 1
EVER = -(2**62)
