"""Consolidating changes: at one instant no equal row is both removed and added.

Equal means equal in every selected value, NULL equal to NULL, as in DISTINCT. Instants at which
rows only come or only go, which is nearly all of them, stay as they are.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.kernels.uncancelled import find_uncancelled
from muntin.model.arrays import Integers, Mask
from muntin.operators.row_keys import row_keys
from muntin.state.group_table import GroupTable


def consolidate(changes: pa.Table, duck: Duck) -> pa.Table:
    """Return the net changes of each instant, by time, otherwise in their order."""
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
    keep = ~mixed
    keep[
        touched[
            _uncancelled(
                changes.take(pa.array(touched)).select(range(1, changes.num_columns)),
                leaving[touched],
                duck,
            )
        ]
    ] = True
    return changes.filter(pa.array(keep))


def _uncancelled(rows: pa.Table, leaving: Mask, duck: Duck) -> Integers:
    """Return the places of changes that no other change cancels out.

    Of equal rows, the first of either sign cancel, as many as both signs have.
    """
    groups = GroupTable().find(*row_keys(rows, Evaluator(duck)))
    counts = np.zeros((2, int(groups.max(initial=-1)) + 1), np.int64)
    uncancelled = np.empty(len(groups), np.bool_)
    find_uncancelled(groups, leaving, counts, uncancelled)
    return np.flatnonzero(uncancelled)
