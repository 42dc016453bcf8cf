"""VAR_SAMP: the variance of a sample; NULL for fewer than two values."""

from __future__ import annotations

from muntin.aggregates.spread import spread

FUNCTION = spread("var_samp", sample=True, root=False, aliases=("variance",))
