"""Consolidating changes: at one instant no equal row is both removed and added.

Equal means equal in every selected value, NULL equal to NULL, as in DISTINCT. Instants at which rows only
come or only go are left alone, which is nearly all of them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.operators.row_keys import row_keys

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def consolidate(changes: pa.Table, duck: Duck) -> pa.Table:
    """The net changes of each instant, by time, otherwise in the order they were in."""
    times = changes.column("_ts").cast(pa.int64()).to_numpy()
    if len(times) > 1 and (times[1:] < times[:-1]).any():
        order = np.argsort(times, kind="stable")
        changes, times = changes.take(pa.array(order)), times[order]
    if not len(times):
        return changes
    leaving = pc.equal(changes.column("_op"), "-").to_numpy()
    starts = np.flatnonzero(np.diff(times, prepend=times[0] - 1))
    minus = np.add.reduceat(leaving.astype(np.int64), starts)
    lengths = np.diff(np.append(starts, len(times)))
    mixed = np.repeat((minus > 0) & (minus < lengths), lengths)
    if not mixed.any():
        return changes
    touched = np.flatnonzero(mixed)
    values = changes.select(range(2, changes.num_columns)).take(pa.array(touched))
    kept = touched[_left((times[touched], *row_keys(values, Evaluator(duck))), leaving[touched])]
    keep = ~mixed
    keep[kept] = True
    return changes.filter(pa.array(keep))


def _left(words: tuple[Integers, ...], leaving: Mask) -> Mask:
    """Which rows are left when those with equal words that come and go cancel each other out, the first ones first."""
    order = np.lexsort((leaving, *words))
    other = np.zeros(len(order), bool)
    for word in words:
        other[1:] |= word[order[1:]] != word[order[:-1]]
    groups = np.cumsum(other)
    gone = leaving[order]
    removed = np.bincount(groups, weights=gone).astype(np.int64)
    pairs = np.minimum(removed, np.bincount(groups) - removed)
    starts = np.flatnonzero(other | np.concatenate([[True], gone[1:] != gone[:-1]]))
    number = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    left = np.zeros(len(order), bool)
    left[order] = number >= pairs[groups]
    return left
