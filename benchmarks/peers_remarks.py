"""Why a system is as fast as it is, in a sentence.

Shares of Muntin's time are from profiles. What is said of Pathway's join stands in its source. The
other systems were not profiled: these sentences say how they work, not where their time was seen to
go.
"""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.peers_data import Kind, Workload

_OF_ALL: Mapping[str, str] = {
    "Muntin": "one core; compiled code over whole batches",
    "Muntin on Spark": (
        "a second until Spark has planned the query, and half a second per micro-batch, whatever "
        "is in it: for packing, two stages and a checkpoint; few rows per batch are too few for "
        "that"
    ),
    "Spark": (
        "every row goes into the state store and is looked up there one at a time, and every "
        "micro-batch writes a checkpoint"
    ),
    "Spark, RocksDB": "as Spark, and every row is encoded for RocksDB and decoded again",
    "Flink SQL": "row by row, with a timer and an entry of a map for each; CSV is parsed in it",
    "Pathway": (
        "all rows in one batch, kept in sorted copies for changes to come; CSV is parsed in it"
    ),
    "Bytewax": "operators in Python, an object and a call a row",
    "DuckDB, batch": "everything at once on all cores, no state kept and no row delivered",
}
_OF_A_KIND: Mapping[tuple[str, Kind], str] = {
    (
        "Muntin",
        "join",
    ): (
        "one core; a quarter of it joins, a quarter keeps windows and indexes, an eighth reads "
        "files"
    ),
    ("Muntin", "three"): "one core; the compiled join takes a third, reading three streams a sixth",
    ("Muntin", "distinct"): "one core; a quarter of it compares each answer with the one before",
    (
        "Muntin",
        "aggregate",
    ): "one core; many small steps, of which reading files, an eighth, is the largest",
    (
        "Spark",
        "aggregate",
    ): (
        "every row is copied into the six windows that it is in, joined in each, and added up in "
        "a second store"
    ),
    ("Spark, RocksDB", "aggregate"): "as Spark: six copies of every row, now encoded for RocksDB",
    (
        "Spark",
        "distinct",
    ): "every row is copied into the six windows that it is in and looked up in the store",
    ("Spark, RocksDB", "distinct"): "as Spark: six copies of every row, now encoded for RocksDB",
    ("Spark", "three"): "the pairs of the first join are stored once more for the second",
    ("Spark, RocksDB", "three"): "as Spark: pairs are stored once more, now encoded for RocksDB",
    (
        "Flink SQL",
        "distinct",
    ): "windows that share slices of ten seconds, row by row; CSV is parsed in it",
    (
        "Flink SQL",
        "aggregate",
    ): (
        "every row is copied into the six windows that it is in and joined when a window ends; "
        "CSV is parsed in it"
    ),
    ("Flink SQL", "three"): "two interval joins, row by row; CSV is parsed in it",
    (
        "Pathway",
        "join",
    ): (
        "rows are copied into two buckets of time, joined there and filtered; all in one "
        "batch, CSV is parsed in it"
    ),
    (
        "Pathway",
        "distinct",
    ): (
        "every row is copied into the six windows that it is in; all in one batch, CSV is parsed "
        "in it"
    ),
    (
        "Pathway",
        "aggregate",
    ): (
        "every row is copied into the six windows that it is in; all in one batch, CSV is parsed "
        "in it"
    ),
    ("Bytewax", "join"): "a join written by hand in Python, with an object for every key",
    ("Bytewax", "three"): "a join written by hand in Python, with an object for every key",
    ("Bytewax", "rows"): "a join written by hand in Python, all keys in one object",
    (
        "Bytewax",
        "distinct",
    ): "Python code for every row and each of its six windows, and a clock for every key",
    (
        "Bytewax",
        "aggregate",
    ): "Python code for every row and each of its six windows, and a clock for every key",
    ("DuckDB, batch", "join"): (
        "everything at once on all cores, no state kept and no row delivered; each window is a "
        "separate join, which finds all pairs of a "
        "key, however far apart, and then filters"
    ),
    (
        "DuckDB, batch",
        "rows",
    ): "everything at once on all cores; rows are sorted and numbered first",
    (
        "DuckDB, batch",
        "aggregate",
    ): (
        "everything at once on all cores: pairs are found once and copied to the instants at "
        "which they count"
    ),
}


def remark(system: str, workload: Workload) -> str:
    """Return the sentence for a workload's kind, or else for the system."""
    return _OF_A_KIND.get((system, workload.kind)) or _OF_ALL.get(system, "")
