"""COVAR_SAMP(y, x): the covariance of a sample; NULL for fewer than two pairs."""

from __future__ import annotations

from functools import partial

from muntin.aggregates.two_arguments import covariances, over_pairs

FUNCTION = over_pairs("covar_samp", partial(covariances, sample=True), least=2)
