"""Gathering from chunks against indexing into one list."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.kernels.chunked_take import BLOCK_BITS, gather_halves, gather_words
from muntin.state.columns import Pieces

BLOCK = 1 << BLOCK_BITS
LENGTHS = st.lists(
    st.sampled_from([1, 2, 3, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK]), min_size=1, max_size=6
)


@pytest.mark.parametrize(("kernel", "kind"), [(gather_words, np.int64), (gather_halves, np.int32)])
def test_values_come_from_the_piece_that_holds_them(
    kernel: object, kind: type[np.int64 | np.int32]
) -> None:
    assert callable(kernel)

    @given(LENGTHS, st.data())
    def check(lengths: list[int], data: st.DataObject) -> None:
        whole = np.arange(sum(lengths), dtype=kind)[::-1].copy() - 7
        parts = np.split(whole, np.cumsum(lengths)[:-1])
        pieces = [
            np.concatenate([[99], part]).astype(kind) for part in parts
        ]  # each begins one value into its memory
        addresses = np.array([piece.ctypes.data + piece.itemsize for piece in pieces], np.int64)
        cut = Pieces.of(lengths)
        ranks = np.array(data.draw(st.lists(st.integers(0, len(whole) - 1), max_size=60)), np.int64)
        out = np.empty(len(ranks), kind)
        kernel(addresses, cut.starts, cut.table, ranks, out)
        assert out.tolist() == whole[ranks].tolist()

    check()


@given(LENGTHS)
def test_the_coarse_table_leads_to_the_first_piece_of_every_block(lengths: list[int]) -> None:
    cut = Pieces.of(lengths)
    assert cut.starts.tolist() == [sum(lengths[:place]) for place in range(len(lengths) + 1)]
    for block, piece in enumerate(cut.table.tolist()):
        if block * BLOCK < sum(lengths):
            assert cut.starts[piece] <= block * BLOCK < cut.starts[piece + 1]
