"""The end of the demo: what was measured, and what to try next."""

from __future__ import annotations

from collections.abc import Iterator

from muntin.cli.demo.comparison import BatchTimes
from muntin.cli.demo.queries import FRESHNESS, WINDOWS
from muntin.cli.demo.readings import MOST_LOAD
from muntin.cli.demo.story import PATIENCE, Found

NEXT = """Try next:
  muntin init hello && cd hello       a small project of your own
  muntin run app.sql --once           run its queries on Spark
  muntin explain app.sql              see how they are run"""


def summary(found: Found, readings: int, seconds: float) -> str:
    """Return the summary of the acts that were played."""
    lines = [f"\n{readings:,} readings in {seconds:.0f} seconds, the start of Spark included."]
    if found.one is not None and found.sixteen is not None:
        lines.append(
            f"A batch took {found.one:.2f} s with one query and {found.sixteen:.2f} s "
            f"with {len(WINDOWS)}."
        )
    if found.compared is not None:
        lines.extend(_compared(found.compared))
    if found.share is not None:
        lines.append(
            f"At {MOST_LOAD} times the load about {found.share:.0%} of the results were made; the "
            f"oldest reading in one was {found.oldest:.1f} s old, {FRESHNESS} s are allowed."
        )
        lines.append(
            "Afterwards results were complete again."
            if found.complete_again
            else "When the demo ended, results were not complete again yet."
        )
    return "\n".join([*lines, "", NEXT])


def _compared(compared: BatchTimes) -> Iterator[str]:
    yield f"The same {compared.readings:,} readings in one batch:"
    for count, ours in compared.muntin.items():
        theirs, ratio = compared.spark[count], compared.ratio(count)
        words = "query  " if count == 1 else "queries"
        yield f"  {count:>2} {words}  Muntin {ours:.2f} s, Spark's own joins " + (
            f"over {PATIENCE:.0f} s (stopped)"
            if theirs is None or ratio is None
            else f"{theirs:.2f} s ({ratio:.1f} times as long)"
        )
