"""STDDEV_POP: the standard deviation of the values; NULL if there are none."""

from __future__ import annotations

from muntin.aggregates.spread import spread

FUNCTION = spread("stddev_pop", sample=False, root=True)
