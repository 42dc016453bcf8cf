"""The common part of aggregates over pairs (y, x): covariances, correlation, linear regression."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pyarrow as pa

from muntin.aggregates.exact import co_deviations, degrees
from muntin.aggregates.function import (
    AggregateFunction,
    Arguments,
    ArgumentSummary,
    Pairs,
    PairSums,
    Result,
    real_result,
)
from muntin.aggregates.types import is_number
from muntin.model.arrays import Integers, Reals

_LEAST_NORMAL = float(np.finfo(np.float64).tiny)


def over_pairs(
    name: str, compute: Callable[[Integers, PairSums], Reals], *, least: int = 1
) -> AggregateFunction:
    """Return a function of counts and sums over pairs; NULL for fewer than ``least`` pairs."""

    def result(kept: ArgumentSummary, kind: pa.DataType, fraction: Fraction) -> Result:
        del kind, fraction
        assert kept.pairs is not None, "the function needs it"
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            return real_result(compute(kept.counts, kept.pairs), kept.counts >= least)

    return AggregateFunction(
        name=name,
        example=f"{name.upper()}(x, y)",
        accepts=is_number,
        needs=lambda _kind, _fraction: (Pairs.SUMS,),
        result=result,
        arguments=Arguments.PAIR,
        takes_distinct=False,
        oracle="{name}({argument}, {key})",
    )


def covariances(counts: Integers, sums: PairSums, *, sample: bool) -> Reals:
    """Return the covariances of a sample or of a population."""
    found: Reals = co_deviations(counts, sums.y, sums.x, sums.yx) / degrees(counts, sample=sample)
    return found


def correlations(counts: Integers, sums: PairSums) -> Reals:
    """Return the correlations, from -1 to 1; NaN where one of the arguments does not vary."""
    squares = (
        np.maximum(co_deviations(counts, sums.y, sums.y, sums.yy), 0.0),
        np.maximum(co_deviations(counts, sums.x, sums.x, sums.xx), 0.0),
    )
    # One root of the product is rounded less, but the product may overflow or underflow.
    product = squares[0] * squares[1]
    fits = np.isfinite(product) & (product > _LEAST_NORMAL)
    spread = np.where(fits, np.sqrt(product), np.sqrt(squares[0]) * np.sqrt(squares[1]))
    together = co_deviations(counts, sums.y, sums.x, sums.yx)
    found: Reals = np.where(spread == 0.0, np.nan, np.clip(together / spread, -1.0, 1.0))
    return found
