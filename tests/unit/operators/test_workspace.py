from __future__ import annotations

import numpy as np

from muntin.operators.workspace import Workspace


def test_one_array_serves_all_shapes_and_grows_to_the_largest() -> None:
    workspace = Workspace()
    first = workspace.results(3)
    assert first.shape[0] == 3
    assert np.shares_memory(first, workspace.results(2))
    wide = workspace.results(3, 10 * first.shape[1])
    assert wide.shape == (3, 10 * first.shape[1])
    assert np.shares_memory(wide, workspace.results(3))


def test_an_array_is_contiguous_as_kernels_require() -> None:
    for rows in (3, 8, 5):
        assert Workspace().results(rows, 1 << 19).flags.c_contiguous
