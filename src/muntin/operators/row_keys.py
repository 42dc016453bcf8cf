"""Two words per row that are equal exactly for rows with equal values, NULL equal to NULL.

One column of numbers or times is the key itself. Texts, other types and several columns become 128
bits of hash, enough that two different rows never share a key in practice.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from muntin.expressions.codes import real_codes, whole_codes
from muntin.expressions.evaluator import Evaluator
from muntin.model.arrays import Integers

Words = npt.NDArray[np.uint64]

_NULL = np.int64(0x7FFFFFFFFFFFFFFF)
_SEEDS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))


def row_keys(columns: pa.Table, evaluator: Evaluator) -> tuple[Integers, Integers]:
    """Return the two words of each row."""
    words = [_words(column, evaluator) for column in columns.columns]
    if len(words) == 1:
        return words[0]
    low, high = (np.zeros(columns.num_rows, np.uint64) for _ in range(2))
    for first, second in words:
        one, other = first.view(np.uint64), second.view(np.uint64)
        low = _mix(_mix(low + one * _SEEDS[0]) ^ (other + _SEEDS[1]))
        high = _mix(_mix(high ^ (other * _SEEDS[1])) + one + _SEEDS[0])
    return low.view(np.int64), high.view(np.int64)


def decimal_words(column: pa.ChunkedArray) -> tuple[Integers, Integers]:
    """Return the low and high halves of 128-bit decimals; 0 for NULL."""
    parts = [
        np.frombuffer(chunk.buffers()[1], np.int64)[
            2 * chunk.offset : 2 * (chunk.offset + len(chunk))
        ].reshape(-1, 2)
        for chunk in column.chunks
        if len(chunk)
    ]
    words = np.concatenate(parts) if parts else np.empty((0, 2), np.int64)
    if column.null_count:
        words = np.where(column.is_valid().to_numpy()[:, None], words, 0)
    return np.ascontiguousarray(words[:, 0]), np.ascontiguousarray(words[:, 1])


def _words(column: pa.ChunkedArray, evaluator: Evaluator) -> tuple[Integers, Integers]:
    kind = column.type
    missing = (
        (~column.is_valid().to_numpy()).astype(np.int64)
        if column.null_count
        else np.zeros(len(column), np.int64)
    )
    if pat.is_floating(kind):
        return real_codes(column), missing
    if (
        pat.is_integer(kind)
        or pat.is_boolean(kind)
        or pat.is_date32(kind)
        or pat.is_time64(kind)
        or pat.is_timestamp(kind)
    ):
        return whole_codes(column), missing
    if pat.is_decimal128(kind):
        low, high = decimal_words(column)
        return low, np.where(missing, _NULL, high)
    return _hashed(column, evaluator)


def _hashed(column: pa.ChunkedArray, evaluator: Evaluator) -> tuple[Integers, Integers]:
    """Return hashes of values; each distinct value is hashed once."""
    places = None
    if pat.is_string(column.type) or pat.is_large_string(column.type) or pat.is_binary(column.type):
        encoded = pc.dictionary_encode(
            column.combine_chunks() if column.num_chunks != 1 else column.chunk(0),
            null_encoding="encode",
        )
        places = encoded.indices.to_numpy()
        column = pa.chunked_array([encoded.dictionary])
    text = (
        '"x"'
        if pat.is_string(column.type) or pat.is_large_string(column.type)
        else 'to_json("x")::VARCHAR'
    )
    lower, upper = evaluator.raw(
        [f"md5_number_lower({text})", f"md5_number_upper({text})"], pa.table({"x": column})
    )
    low, high = whole_codes(lower), whole_codes(upper)
    return (low, high) if places is None else (low[places], high[places])


def _mix(words: Words) -> Words:
    """Return a 64-bit hash that is a bijection (the finisher of SplitMix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Words = words ^ (words >> np.uint64(31))
    return mixed
