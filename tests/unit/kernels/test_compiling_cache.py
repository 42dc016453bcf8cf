"""Compiled kernels are taken from the cache only as long as no kernel file has changed."""

from __future__ import annotations

from muntin.kernels import compiling, joining, pairing, retracting  # noqa: F401 (they register their kernels)


def test_the_stamp_of_every_kernel_is_the_text_of_all_of_them() -> None:
    stamps = {kernel._cache._cache_file._source_stamp for _, kernel, _ in compiling._kernels}
    assert stamps == {compiling._stamp()}
    assert len(compiling._kernels) >= 15


def test_preparing_twice_costs_nothing() -> None:
    compiling.prepare()
    assert compiling.prepare() == 0.0
