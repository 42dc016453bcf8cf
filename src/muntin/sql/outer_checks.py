"""What the joins of FROM must be like: words that go together, and conditions they can see."""

from __future__ import annotations

from muntin.sql.binder import Conditions
from muntin.sql.outer_joins import OUTER, kind_of
from muntin.sql.shape import SelectParts

_HINT = "Write INNER, LEFT, RIGHT, FULL, SEMI or ANTI JOIN with ON, or CROSS JOIN"
_KNOWN = {
    "", ",", "JOIN", "INNER JOIN", "CROSS JOIN",
    *(f"{kind} JOIN" for kind in OUTER),
    *(f"{kind} OUTER JOIN" for kind in ("LEFT", "RIGHT", "FULL")),
}  # fmt: skip


def check_outer(shape: SelectParts, conditions: Conditions) -> None:
    """Refuse words before JOIN that mean nothing, and USING and ON that cannot be kept apart."""
    first = 0
    firsts = []
    for place, entry in enumerate(shape.entries):
        if entry.join not in _KNOWN:
            raise entry.tokens.error(entry.tokens[0], f"{entry.join} is not supported", _HINT)
        if kind_of(entry.join) in {"RIGHT", "FULL"} and entry.using is not None:
            fact = f"{entry.join} with USING is not supported"
            raise entry.tokens.error(entry.using.start, fact, "Write the equalities in ON")
        first = place if entry.join in {"", ","} else first
        firsts.append(first)
    outer = {firsts[place] for place, entry in enumerate(shape.entries) if kind_of(entry.join)}
    for condition in conditions.on:
        assert condition.entry is not None, "ON belongs to an entry"
        start = firsts[condition.entry]
        if start in outer and any(one.source < start for one in condition.whole.references):
            tokens = condition.whole.tokens
            fact = "this ON reads an entry of FROM before the comma, which the join does not see"
            raise tokens.error(tokens.start, fact, "Write JOIN in place of the comma, or use WHERE")
