"""The plans of queries as users get them: text, and a picture in a notebook."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from muntin.plan.description import Description, draw
from muntin.plan.picture import picture


class Explanation(str):
    """Plans as text, a tree for each query, which a notebook shows as pictures.

    >>> explained = Explanation([Description("query", "query q")])
    >>> print(explained)
    query q
    >>> explained.svg().startswith("<svg ")
    True
    """

    __slots__ = ("_plans",)

    _plans: tuple[Description, ...]

    def __new__(cls, plans: Iterable[Description]) -> Self:
        """Describe plans; without any, the text says so."""
        kept = tuple(plans)
        made = super().__new__(cls, "\n\n".join(map(draw, kept)) or "no queries")
        made._plans = kept
        return made

    def svg(self) -> str:
        """Return the pictures of all plans as SVG elements, one below the other."""
        return "\n".join(map(picture, self._plans))

    def _repr_html_(self) -> str:
        return self.svg() or f"<p>{self}</p>"
