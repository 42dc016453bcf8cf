"""Test tools that users can apply to their queries too.

* :mod:`~muntin.testing.oracle`: the definition of correct results, computed by DuckDB from all rows
  at once.
* :mod:`~muntin.testing.golden`: scripts and their syntax, with :mod:`~muntin.testing.cells` for
  values. :mod:`~muntin.testing.runner`, :mod:`~muntin.testing.session` and
  :mod:`~muntin.testing.checks` run them against a :mod:`~muntin.testing.driver`: the engine, or the
  oracle alone.
* :mod:`~muntin.testing.compare`: equality of tables, and their differences as text.
* :mod:`~muntin.testing.generators`: synthetic streams for benchmarks and examples.
* :mod:`~muntin.testing.join_counts` and :mod:`~muntin.testing.join_cases`: counted work of joins,
  beside the predictions of cost models.
* :mod:`~muntin.testing.processes`: the processes of a Spark session, for fault injection.
* :mod:`~muntin.testing.strategies` and :mod:`~muntin.testing.case`: random cases for Hypothesis,
  which prints failures as scripts.

Nothing else in Muntin imports this package, except the command line.
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
