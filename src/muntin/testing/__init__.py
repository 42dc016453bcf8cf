"""What proves Muntin right, shipped so that users can test their own queries with it.

* :mod:`~muntin.testing.oracle`: what a query must give, computed by DuckDB from all rows at once.
The definition of correct.
* :mod:`~muntin.testing.golden` (scripts and how they are written, with :mod:`~muntin.testing.cells`
for values),
  :mod:`~muntin.testing.runner`, :mod:`~muntin.testing.session` and :mod:`~muntin.testing.checks` (running them),
  :mod:`~muntin.testing.driver` (what they run against: the engine, or the oracle alone).
* :mod:`~muntin.testing.compare`: equality of tables, and what differs as text.
* :mod:`~muntin.testing.generators`: made-up streams for benchmarks and examples.
* :mod:`~muntin.testing.join_counts` and :mod:`~muntin.testing.join_cases`: counted work of joins,
beside what cost models predict.
* :mod:`~muntin.testing.processes`: the processes of a Spark session, to end some and see what
happens.
* :mod:`~muntin.testing.strategies` and :mod:`~muntin.testing.case`: random cases for Hypothesis,
which prints failures as scripts.

Nothing else of Muntin imports from here, except the command line.
"""

from muntin.testing.compare import assert_same_changes, assert_same_rows, assert_same_sequence
from muntin.testing.oracle import Oracle
from muntin.testing.runner import Report, run_file

__all__ = [
    "Oracle",
    "Report",
    "assert_same_changes",
    "assert_same_rows",
    "assert_same_sequence",
    "run_file",
]
