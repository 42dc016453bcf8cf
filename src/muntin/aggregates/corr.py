"""CORR(y, x): the correlation of two arguments; NaN where one of them does not vary."""

from __future__ import annotations

from muntin.aggregates.two_arguments import correlations, over_pairs

FUNCTION = over_pairs("corr", correlations)
