"""What the joins of FROM must be like: words that go together, and conditions they can see."""

from __future__ import annotations

from muntin.sql.binder import Conditions
from muntin.sql.outer_joins import OUTER, kind_of
from muntin.sql.shape import SelectParts

_HINT = "Write INNER, LEFT, RIGHT, FULL, SEMI, ANTI or ASOF JOIN with ON, or CROSS JOIN"
_HINTS = {
    "ASOF RIGHT": "Exchange the sides and write ASOF LEFT JOIN",
    "ASOF FULL": "Write ASOF LEFT JOIN",
    "ASOF SEMI": "Write SEMI JOIN with the same ON: any row before is a match",
    "ASOF ANTI": "Write ANTI JOIN with the same ON: any row before is a match",
    "NATURAL ASOF": "Write ASOF JOIN ... USING (columns), the last one being the time",
    "ASOF NATURAL": "Write ASOF JOIN ... USING (columns), the last one being the time",
}
_CONDITIONAL = (
    "JOIN", "INNER JOIN",
    *(f"{kind} JOIN" for kind in OUTER),
    *(f"{kind} OUTER JOIN" for kind in ("LEFT", "RIGHT", "FULL")),
)  # fmt: skip
_KNOWN = {
    "", ",", "CROSS JOIN", *_CONDITIONAL,
    *(f"NATURAL {join}" for join in _CONDITIONAL),
    *(f"ASOF {kind}JOIN" for kind in ("", "INNER ", "LEFT ", "LEFT OUTER ")),
}  # fmt: skip


def check_words(shape: SelectParts) -> None:
    """Refuse words before JOIN that mean nothing together."""
    for entry in shape.entries:
        if entry.join not in _KNOWN:
            hint = _HINTS.get(" ".join(entry.join.split()[:2]), _HINT)
            raise entry.tokens.error(entry.tokens.start, f"{entry.join} is not supported", hint)


def check_outer(shape: SelectParts, conditions: Conditions) -> None:
    """Refuse an ON that reads what its join does not see."""
    first = 0
    firsts = []
    for place, entry in enumerate(shape.entries):
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
