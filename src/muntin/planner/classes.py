"""Equality classes: codes that a query forces to be equal, also across several predicates.

``A.k = B.k AND B.k = C.k`` puts three codes into one class, so a row of C can look up A directly.
Sound because only codes of one kind are joined, and on them equality is transitive.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from muntin.plan.join import Code

CodeRef = tuple[int, int]
"""A code by (source, number of the code in the source)."""


@dataclass
class CodeTable:
    """The codes of each source, numbered as they are asked for."""

    codes: list[list[Code]]

    def node(self, source: int, code: Code) -> CodeRef:
        """Return the code's number in its source, given when it is new."""
        mine = self.codes[source]
        if code not in mine:
            mine.append(code)
        return source, mine.index(code)


def equality_classes(
    pairs: Iterable[tuple[CodeRef, CodeRef]],
) -> Mapping[CodeRef, frozenset[CodeRef]]:
    """Return the class of every node that occurs in a pair."""
    classes: dict[CodeRef, frozenset[CodeRef]] = {}
    for left, right in pairs:
        both = classes.get(left, frozenset({left})) | classes.get(right, frozenset({right}))
        for node in both:
            classes[node] = both
    return classes
