"""The values of aggregates over frames, from what is read of each frame."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from muntin.aggregates import aggregate_functions
from muntin.aggregates.function import ArgumentSummary, Keep, Rank
from muntin.kernels import window_functions as kernels
from muntin.model.arrays import Integers, Reals
from muntin.plan.window_functions import WindowCall
from muntin.state.framed_rows import FramedRows


def aggregate_values(
    call: WindowCall, parts: Sequence[tuple[int, Integers]], rows: FramedRows
) -> pa.Array:
    """Return the values of an aggregate; ``parts`` are its readings with their words."""
    if call.argument is None:
        return pa.array(np.ascontiguousarray(parts[0][1][:, 0]))
    column = call.argument
    kind = rows.type_of(column)
    function = aggregate_functions()[call.function]
    needs = function.needs(kind, Fraction(1, 2))
    count = len(parts[0][1])
    # Functions compare two states of a group, interleaved; here every state stands for itself.
    read = {need: _even(words) for need, (_, words) in zip(needs, parts, strict=False)}
    first = _even(parts[0][1])[:, 0]
    if parts[0][0] == kernels.EXTREME:
        first = (first != kernels.MISSING).astype(np.int64)
    ranks = {
        need: np.ascontiguousarray(words[:, 0])
        for need, words in read.items()
        if isinstance(need, Rank)
    }
    whole = read.get(Keep.WHOLE_SUM)
    kept = ArgumentSummary(
        np.ascontiguousarray(first),
        whole=None if whole is None else np.ascontiguousarray(whole[:, 1:4]),
        reals=_reals(read.get(Keep.REAL_SUM)),
        squares=_reals(read.get(Keep.REAL_SQUARES)),
        ranks=ranks,
        decode=lambda places: rows.values(places, column),
        scale=kind.scale if pat.is_decimal(kind) else 0,
    )
    return function.result(kept, call.type, Fraction(1, 2)).values.slice(0, count)


def _reals(words: Integers | None) -> Reals | None:
    """Return sums in two parts, from the words that are read."""
    if words is None:
        return None
    parts: Reals = np.ascontiguousarray(words[:, 1:3]).view(np.float64)
    return parts


def _even(words: Integers) -> Integers:
    """Return words with the last row repeated if their number is odd."""
    return np.concatenate([words, words[-1:]]) if len(words) % 2 else words
