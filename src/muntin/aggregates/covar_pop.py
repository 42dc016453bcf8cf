"""COVAR_POP(y, x): the covariance of a population."""

from __future__ import annotations

from functools import partial

from muntin.aggregates.two_arguments import covariances, over_pairs

FUNCTION = over_pairs("covar_pop", partial(covariances, sample=False))
