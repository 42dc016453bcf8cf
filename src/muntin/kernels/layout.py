"""The numbers in the flat arrays of a join's state.

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
head is the low 31 bits of the newest row's sequence number plus one, 0 for none (a ring has fewer
rows than that). Whatever leads below ``TAIL`` is dead, which is why expiry deletes nothing: a link
is only followed towards older rows, and a row that was overwritten has a sequence number below
``TAIL``.

Heads of an index are ``HEAD_STEP`` halves apart. When all stores have one index on the same key,
the heads of a bucket are adjacent: a new row changes one, reads the others, and finds them in one
cache line.
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
# Arguments: STEP_KEYS pairs (store, word), then STEP_CHECKS quadruples (operator, own word, store,
# word).

EQ = 0
NE = 1
LT = 2
LE = 3
GT = 4
GE = 5

# A level of a climb through a tree (one row of the program of a leaf): the sibling (a store, or the
# number of stores plus a node), its index if it is a store, who supplies each key, checks, and the
# node that keeps what was found (-1: a result).
CLIMB_NODE = 0
CLIMB_INDEX = 1
CLIMB_KEYS = 2
CLIMB_CHECKS = 3
CLIMB_PARENT = 4
CLIMB_ARGUMENTS = 5
# Arguments: CLIMB_KEYS pairs (store, word), then CLIMB_CHECKS quintuples (operator, own store, own
# word, store, word).

# Fields of a node that keeps partial matches. From NODE_SOURCES on: a place for each store of the
# tree, of which the first WIDTH name the sources of a partial match's members; then KEY_COUNT pairs
# (member, word).
NODE_MEMBERS = 0
NODE_WIDTH = 1
NODE_CAP = 2
NODE_USED = 3
NODE_LINKS = 4
NODE_HEADS = 5
NODE_BUCKETS = 6
NODE_KEY_COUNT = 7
NODE_SOURCES = 8

# Fields of a half join under probe budgets (one row of their table): it is numbered by who probes,
# a store, or the number of stores plus a node. Counts are those of the present cycle; BEFORE has
# the arrivals of the last one, EXPECTED those of the cycle before this; INSIDE is the size of the
# prober's own state when it was last counted; KEY the word of a store's rows by which a slice of
# them is chosen (0: none).
H_BUDGET = 0
H_ARRIVED = 1
H_PROBED = 2
H_MATCHED = 3
H_BEFORE = 4
H_EXPECTED = 5
H_INSIDE = 6
H_ALL_ARRIVED = 7
H_ALL_PROBED = 8
H_ALL_MATCHED = 9
H_KEY = 10
H_FIELDS = 11

# Fields of the pace of a limited join: length of a cycle, who may probe, seed; then the cycle of
# the last row, the first one without a sample, probes of all in this cycle and the most of them
# (-1: any number); partial matches that a node keeps (0: as the windows
# say), whether freshness is enforced, stale results; what came since nodes were counted, what there
# was then, and when that was; of the hashes of keys, a circle of 2^32, how many are in the slice
# that may probe (0: all), where it begins, and how far it moves in a cycle; the work of this cycle,
# probes and matches, and the most of it (-1: any).
P_PERIOD = 0
P_CHOICE = 1
P_SEED = 2
P_CYCLE = 3
P_NEXT = 4
P_USED = 5
P_MOST = 6
P_KEEP = 7
P_ENFORCE = 8
P_STALE = 9
P_NEW = 10
P_COUNTED = 11
P_COUNTED_AT = 12
P_SLICE = 13
P_SLICE_FROM = 14
P_TURN = 15
P_WORK = 16
P_MOST_WORK = 17
P_FIELDS = 18

# Who may probe.
OLDEST_FIRST = 0
NEWEST_FIRST = 1
RANDOMLY = 2

# What is known of each store's freshness (rows of a table with a column for each store): its size,
# where the engine is (a time or a count of rows), what is to be kept whatever the windows say, the
# count at the last row, the greatest age of a result's row.
F_SIZE = 0
F_PRESENT = 1
F_HOLD = 2
F_SEEN = 3
F_AGE = 4
F_FIELDS = 5

# A sample: the number of the cycle, then for each half join its arrivals, probes, matches, and the
# size of its own state.
SAMPLE_FIELDS = 4

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
N_PARTIAL_MATCHES = 9
COUNTERS = 10

# Scratch space of a kernel besides five numbers a store: two counts, the counters, the pipe of
# prefetches.
SCRATCH = 2 + COUNTERS + 128

# Why a kernel returned.
DONE = 0
FULL = 1
GROW = 2
OVERFLOW = 3
WIDEN = 4
CYCLE = 5

# Value of ``resume`` that makes join_interval insert without joining.
SILENT = 2

NEVER = 2**63 - 1
EVER = -(2**62)
