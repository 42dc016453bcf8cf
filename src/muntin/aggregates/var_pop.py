"""VAR_POP: the variance of the values; NULL if there are none."""

from __future__ import annotations

from muntin.aggregates.spread import spread

FUNCTION = spread("var_pop", sample=False, root=False)
