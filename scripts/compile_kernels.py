"""Compile all kernels into numba's cache: ``python scripts/compile_kernels.py PROCESSES``.

Parallel tests would otherwise each compile all of them. With a warm cache this takes a few seconds
and prints nothing.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import muntin.kernels
from muntin.kernels.jit import all_kernels


def load() -> int:
    """Import every kernel and return their number."""
    for module in pkgutil.iter_modules(muntin.kernels.__path__, "muntin.kernels."):
        importlib.import_module(module.name)
    importlib.import_module("muntin.testing.simulated_join")
    return len(all_kernels())


def compile_one(place: int) -> bool:
    """Compile one kernel unless it is cached; return whether it was cached."""
    load()
    return all_kernels()[place].compile()


def main(processes: int) -> None:
    """Compile all kernels, each in the next free process."""
    start = time.perf_counter()
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(compile_one, range(load())))
    if not all(found):
        print(f"compiled {found.count(False)} kernels in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]))
