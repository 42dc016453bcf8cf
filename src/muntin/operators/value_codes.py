"""Integers that stand for the values of a column and keep their order, and the way back."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from muntin.expressions.codes import real_codes, whole_codes
from muntin.model.arrays import Integers

_GAP = 1 << 40
_SPARE = 1_000


class KeptValues(Protocol):
    """Who keeps values by their codes."""

    def __len__(self) -> int: ...

    def known(self) -> Integers:
        """Return all codes that are kept, ascending."""

    def rename(self, before: Integers, after: Integers) -> None:
        """Use other codes for the same values, in the same order."""


class ValueCodes(Protocol):
    """From values to integers and back."""

    def encode(self, column: pa.ChunkedArray, values: KeptValues) -> Integers:
        """Return the codes of a column, any for NULL; replace codes in ``values`` if needed."""

    def decode(self, codes: Integers) -> pa.Array:
        """Return the values of codes; any value where a code has none."""


def value_codes(kind: pa.DataType) -> ValueCodes:
    """Return the conversion for values of a type."""
    if pat.is_floating(kind):
        return RealCodes(kind)
    fixed = (
        pat.is_boolean(kind)
        or pat.is_date32(kind)
        or (pat.is_time64(kind) and kind.unit == "us")
        or pat.is_timestamp(kind)
    )
    if fixed or (pat.is_integer(kind) and kind != pa.uint64()):
        return WholeCodes(kind)
    return Labels(kind)


class WholeCodes:
    """Values that are stored as integers."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind

    def encode(self, column: pa.ChunkedArray, values: KeptValues) -> Integers:
        """Return the integers."""
        del values
        return whole_codes(column)

    def decode(self, codes: Integers) -> pa.Array:
        """Return the values."""
        numbers = pa.array(codes)
        if pat.is_boolean(self._kind):
            return pc.not_equal(numbers, 0)
        if pat.is_date32(self._kind):
            return numbers.cast(pa.int32()).cast(self._kind)
        return numbers.cast(self._kind)


class RealCodes:
    """Floating-point values: one zero, one NaN, which is above all."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind

    def encode(self, column: pa.ChunkedArray, values: KeptValues) -> Integers:
        """Return bits in the order of the values."""
        del values
        return real_codes(column)

    def decode(self, codes: Integers) -> pa.Array:
        """Return the values."""
        bits = codes ^ ((codes >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))
        return pa.array(bits.view(np.float64)).cast(self._kind)


class Labels:
    """Values of any ordered type, such as texts: labels with gaps between them for new values.

    Cost: a batch with new values sorts all known ones. Values that are no longer there are dropped
    from time to time.
    """

    def __init__(self, kind: pa.DataType) -> None:
        self._known = pa.array([], kind)
        self._labels = np.empty(0, np.int64)

    def encode(self, column: pa.ChunkedArray, values: KeptValues) -> Integers:
        """Return labels; new values get one."""
        encoded = pc.dictionary_encode(column.combine_chunks())
        found = encoded.dictionary
        new = found.filter(pc.is_null(pc.index_in(found, self._known)))
        if len(new):
            if len(self._known) > 2 * len(values) + _SPARE:
                self._forget(values)
            self._add(new, values)
        labels = self._labels[pc.index_in(found, self._known).to_numpy()]
        places = encoded.indices.fill_null(0).to_numpy()
        return labels[places] if len(labels) else np.zeros(len(column), np.int64)

    def decode(self, codes: Integers) -> pa.Array:
        """Return the values of labels."""
        if not len(self._known):
            return pa.nulls(len(codes), self._known.type)
        places = np.minimum(np.searchsorted(self._labels, codes), len(self._labels) - 1)
        return self._known.take(pa.array(places))

    def _forget(self, values: KeptValues) -> None:
        there = np.isin(self._labels, values.known())
        self._known, self._labels = self._known.filter(pa.array(there)), self._labels[there]

    def _add(self, new: pa.Array, values: KeptValues) -> None:
        """Put new values between known ones; where no gap is left, label all values again."""
        both = pa.concat_arrays([self._known, new])
        order = pc.sort_indices(both).to_numpy()
        labels = np.concatenate([self._labels, np.zeros(len(new), np.int64)])[order]
        old = order < len(self._known)
        edges = np.concatenate([[-1], np.flatnonzero(old), [len(order)]])
        ends = np.concatenate([[0], labels[old], [0]])
        ends[0] = (ends[1] if old.any() else 0) - (int(edges[1]) + 1) * _GAP
        ends[-1] = ends[-2] + (len(order) - int(edges[-2])) * _GAP
        gap = np.searchsorted(edges, np.arange(len(order)), side="right") - 1
        steps = (ends[gap + 1] - ends[gap]) // (edges[gap + 1] - edges[gap])
        placed = np.where(old, labels, ends[gap] + steps * (np.arange(len(order)) - edges[gap]))
        if (steps < 1).any() or np.abs(placed).max() > 1 << 61:
            placed = (np.arange(len(order), dtype=np.int64) - len(order) // 2) * _GAP
        if not np.array_equal(placed[old], self._labels):
            values.rename(self._labels, placed[old])
        self._known, self._labels = both.take(pa.array(order)), placed
