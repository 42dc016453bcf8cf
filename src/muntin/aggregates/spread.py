"""The common part of variances and standard deviations: exact sums of values and of squares."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pyarrow as pa

from muntin.aggregates.exact import variances
from muntin.aggregates.function import AggregateFunction, ArgumentSummary, Keep, Result, real_result
from muntin.aggregates.types import is_number


def _result(
    *, sample: bool, root: bool
) -> Callable[[ArgumentSummary, pa.DataType, Fraction], Result]:
    def result(kept: ArgumentSummary, kind: pa.DataType, fraction: Fraction) -> Result:
        del kind, fraction
        assert kept.reals is not None, "the function needs it"
        assert kept.squares is not None, "the function needs it"
        numbers = variances(kept.counts, kept.reals, kept.squares, sample=sample)
        return real_result(np.sqrt(numbers) if root else numbers, kept.counts > int(sample))

    return result


def spread(
    name: str, *, sample: bool, root: bool, aliases: tuple[str, ...] = ()
) -> AggregateFunction:
    """Return the variance, or its root, of a sample or of a population."""
    return AggregateFunction(
        name=name,
        example=f"{name.upper()}(x)",
        accepts=is_number,
        needs=lambda _kind, _fraction: (Keep.REAL_SUM, Keep.REAL_SQUARES),
        result=_result(sample=sample, root=root),
        aliases=aliases,
    )
