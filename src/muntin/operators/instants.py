"""The order of instants, by which changes are put together."""

from __future__ import annotations

import numpy as np

from muntin.kernels.radix_sort import BUCKETS, rank_instants
from muntin.model.arrays import Integers


def order_of(instants: Integers) -> Integers | None:
    """Return the places of instants by time, stable; None if they are in order.

    >>> order_of(np.array([3, 1, 3, 2])).tolist()
    [1, 3, 0, 2]
    >>> order_of(np.array([1, 1, 2])) is None
    True
    """
    if (instants[1:] >= instants[:-1]).all():
        return None
    if len(instants) < BUCKETS:
        return np.argsort(
            instants, kind="stable"
        )  # so few are not worth the buckets of a radix sort
    least = int(instants.min())
    order, spare = np.empty(len(instants), np.int64), np.empty(len(instants), np.int64)
    in_spare = rank_instants(
        instants, least, int(instants.max()) - least, order, spare, np.empty(BUCKETS, np.int64)
    )
    return spare if in_spare else order
