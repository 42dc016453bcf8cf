"""STDDEV_SAMP: the standard deviation of a sample; NULL for fewer than two values."""

from __future__ import annotations

from muntin.aggregates.spread import spread

FUNCTION = spread("stddev_samp", sample=True, root=True, aliases=("stddev",))
