"""Columns of generated texts: names, words, addresses of pages, filler of a given length.

Words are pieces of one long text of random letters, so that a column costs one gather of bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

CHANNELS = 10_000
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
_POOL = 1 << 20
_SEED = 13
_SPREAD = 0.2
"""How much the length of filler varies, as a share of it."""

Numbers: TypeAlias = npt.NDArray[np.int64]
Draw: TypeAlias = Callable[[int | Numbers], Numbers]
"""Returns a column of random numbers below a limit."""


class Texts:
    """Columns of texts for so many rows, of what ``below`` draws for each of them."""

    def __init__(self, rows: int, below: Draw) -> None:
        self._rows, self._below = rows, below

    def one_of(self, choices: Sequence[str]) -> pa.Array:
        """Return one of the choices for each row."""
        return pa.array(choices).take(pa.array(self._below(len(choices))))

    def joined(self, parts: Sequence[pa.Array], separator: str) -> pa.Array:
        """Return the parts of each row with the separator between them."""
        return pc.binary_join_element_wise(*parts, separator)

    def word(self, least: int, most: int) -> pa.Array:
        """Return letters, at least and at most so many."""
        return self._pieces(_letters(), least + self._below(most - least + 1))

    def sentence(self, least: int, most: int) -> pa.Array:
        """Return letters with spaces between some of them, at least and at most so many."""
        return self._pieces(_letters_and_spaces(), least + self._below(most - least + 1))

    def digits(self, count: int) -> pa.Array:
        """Return so many digits."""
        numbers = pa.array(self._below(10**count) + 10**count).cast(pa.string())
        return pc.utf8_slice_codeunits(numbers, 1)

    def filler(self, average: int, columns: Iterable[pa.Array], others: int) -> pa.Array:
        """Return letters for rows of so many bytes on average.

        The texts of the columns count, and ``others``, the bytes of the remaining columns.
        """
        lengths = np.full(self._rows, others)
        for column in columns:
            lengths += pc.binary_length(column).to_numpy()
        left = np.maximum(average - lengths, 0)
        spread = np.rint(left * _SPREAD).astype(np.int64)
        return self._pieces(_letters(), left - spread + self._below(np.maximum(2 * spread, 1)))

    def channels(self) -> tuple[pa.Array, pa.Array]:
        """Return where a bid comes from, and the page; half of them from four hot channels."""
        names, urls = _channels()
        hot = self._below(2) > 0
        place = np.where(hot, self._below(len(HOT_CHANNELS)), len(HOT_CHANNELS))
        place += np.where(hot, 0, self._below(CHANNELS))
        return names.take(pa.array(place)), urls.take(pa.array(place))

    def _pieces(self, pool: npt.NDArray[np.uint8], lengths: Numbers) -> pa.Array:
        """Return a piece of the pool of each length."""
        starts = self._below(_POOL - lengths)
        return _cut(pool, starts, lengths)


def _cut(pool: npt.NDArray[np.uint8], starts: Numbers, lengths: Numbers) -> pa.Array:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
    return pa.StringArray.from_buffers(
        len(lengths), pa.py_buffer(offsets), pa.py_buffer(pool[places])
    )


@cache
def _letters() -> npt.NDArray[np.uint8]:
    return np.random.default_rng(_SEED).integers(ord("a"), ord("z") + 1, _POOL, dtype=np.uint8)


@cache
def _letters_and_spaces() -> npt.NDArray[np.uint8]:
    blank = np.random.default_rng(_SEED + 1).integers(0, 13, _POOL) == 0
    return np.where(blank, np.uint8(ord(" ")), _letters())


@cache
def _channels() -> tuple[pa.Array, pa.Array]:
    """Return names and pages of all channels: the hot ones, then the others.

    Nine of ten pages of the others have the number of the channel in their address.
    """
    random = np.random.default_rng(_SEED + 2)
    count = len(HOT_CHANNELS) + CHANNELS
    folders = [
        _cut(_letters(), random.integers(0, _POOL - 5, count), random.integers(3, 6, count))
        for _ in range(3)
    ]
    urls = pc.binary_join_element_wise(
        "https://auctions.example", *folders, "item.htm?query=1", "/"
    )
    numbers = np.arange(count) * 7_919 % 1_000_003
    named = (np.arange(count) >= len(HOT_CHANNELS)) & (random.random(count) < 0.9)
    identified = pc.binary_join_element_wise(
        urls, pa.array(numbers).cast(pa.string()), "&channel_id="
    )
    names = [*HOT_CHANNELS, *(f"channel-{number}" for number in range(CHANNELS))]
    return pa.array(names), pc.if_else(pa.array(named), identified, urls)
