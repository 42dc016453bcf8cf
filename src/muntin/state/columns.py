"""Columns: taking values at many places out of many Arrow chunks, and columns of integers.

Arrow's own ``take`` looks for the chunk of every index by bisection, which on windows of many
segments costs more than the join. For columns of fixed width without NULLs a kernel does it by a
coarse table; for all others Arrow does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.kernels.chunked_take import BLOCK_BITS, gather_halves, gather_words
from muntin.model.arrays import Integers

_KERNELS: dict[int, tuple[Callable[..., None], type[np.signedinteger]]] = {
    64: (gather_words, np.int64),
    32: (gather_halves, np.int32),
}
_FEW = 4
"""From this number of chunks on there are many."""
_SPARSE = 11
"""Arrow concatenates few chunks before it takes from them; that pays above this share of values."""


@dataclass(frozen=True)
class Pieces:
    """How the rows of a table are cut.

    ``starts`` of the pieces, and for each block of ranks the first piece in it.
    """

    starts: Integers
    table: Integers

    @classmethod
    def of(cls, lengths: Sequence[int]) -> Pieces:
        """Return the pieces of the given lengths."""
        starts = np.cumsum([0, *lengths]).astype(np.int64)
        blocks = np.arange((int(starts[-1]) >> BLOCK_BITS) + 1, dtype=np.int64) << BLOCK_BITS
        return cls(starts, np.searchsorted(starts, blocks, side="right") - 1)


@lru_cache(maxsize=1_024)
def empty_table(schema: pa.Schema) -> pa.Table:
    """Return a table without rows; kept, since Arrow builds one in tens of microseconds."""
    return schema.empty_table()


def take(column: pa.ChunkedArray, ranks: Integers) -> pa.ChunkedArray:
    """Return the values of a column at the given places."""
    kind = column.type
    width = kind.bit_width if _is_plain(kind) else 0
    together = column.num_chunks < 2 or (
        column.num_chunks < _FEW and _SPARSE * len(ranks) > len(column)
    )
    if width not in _KERNELS or together or column.null_count:
        return _take_by_arrow(column, ranks)
    kernel, number = _KERNELS[width]
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    pieces = Pieces.of([len(chunk) for chunk in chunks])
    addresses = np.array(
        [chunk.buffers()[1].address + chunk.offset * (width // 8) for chunk in chunks], np.int64
    )
    out = np.empty(len(ranks), number)
    kernel(addresses, pieces.starts, pieces.table, ranks, out)
    return pa.chunked_array([pa.Array.from_buffers(kind, len(ranks), [None, pa.py_buffer(out)])])


def gather_numbers(pieces: Sequence[Integers], ranks: Integers) -> Integers:
    """Return the numbers at the given places of an array that lies in pieces.

    None of them is empty.
    """
    pieces = [np.ascontiguousarray(piece) for piece in pieces]
    cut = Pieces.of([len(piece) for piece in pieces])
    out = np.empty(len(ranks), np.int64)
    gather_words(
        np.array([piece.ctypes.data for piece in pieces], np.int64),
        cut.starts,
        cut.table,
        ranks,
        out,
    )
    return out


def take_rows(table: pa.Table, ranks: Integers) -> pa.Table:
    """Return the rows of a table at the given places."""
    return pa.table([take(column, ranks) for column in table.columns], schema=table.schema)


def _take_by_arrow(column: pa.ChunkedArray, ranks: Integers) -> pa.ChunkedArray:
    """Arrow's ``take``.

    Where the texts of all values are more than one chunk can hold, in several.
    """
    try:
        return column.take(pa.array(ranks))
    except pa.ArrowInvalid:
        if len(ranks) < 2:
            raise
        half = len(ranks) // 2
        parts = [_take_by_arrow(column, ranks[:half]), _take_by_arrow(column, ranks[half:])]
        return pa.chunked_array([chunk for part in parts for chunk in part.chunks], column.type)


def _is_plain(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_date32(kind)
    )


class StoredRows:
    """A stored table as a gatherer."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def gather(self, positions: Integers, columns: Sequence[str]) -> list[pa.ChunkedArray]:
        """Return the values of columns at row numbers."""
        return [take(self._table.column(name), positions) for name in columns]


def sign_column(signs: npt.NDArray[np.int8] | None, count: int) -> pa.Array:
    """Return ``'+'`` and ``'-'`` as an Arrow column, without a Python object per row."""
    text = (
        np.full(count, ord("+"), np.uint8)
        if signs is None
        else np.where(signs > 0, ord("+"), ord("-")).astype(np.uint8)
    )
    offsets = np.arange(count + 1, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text))


def time_column(times: Integers) -> pa.Array:
    """Return instants as an Arrow column; a copy, since kernels reuse their buffers."""
    return pa.array(np.array(times)).view(pa.timestamp("us"))
