"""Rule: every predicate goes where it is cheapest to test, and equality is transitive.

Predicates over one source filter its rows before they are stored. Comparisons of two sources are
made on codes, equalities by index. All others are residuals, tested on combinations: after all
joins, since they are expensive ([Golab03, section 5.4]). Among residuals, and among filters of one
source, the costs measured at run time decide
(:mod:`muntin.expressions.predicate_order`). Sound because
a conjunction may be tested in any order, and codes that are only hashes are tested again as
residuals. ``A.k = B.k AND B.k = C.k`` also ties A to C: equality of codes of one kind is
transitive.
"""

from __future__ import annotations

from dataclasses import replace

from muntin.planner.classes import equality_classes
from muntin.planner.draft import JoinDraft
from muntin.planner.predicates import sort_predicates


def place_predicates(draft: JoinDraft) -> JoinDraft:
    """Sort the predicates by where they are tested, and find the classes of equal codes."""
    parts = sort_predicates(draft.query.join)
    return replace(draft, parts=parts, classes=equality_classes(parts.equalities))
