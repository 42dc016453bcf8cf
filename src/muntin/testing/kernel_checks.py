"""Checks of the arguments of kernels, which compiled code does not make itself.

An argument of another type than the kernel was compiled for, or an array that is not contiguous, is
an error. Kernels read some arrays that Arrow does not let them write, so that is not checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import numpy as np

from muntin.kernels.jit import Kernel, fields_of


def checked(kernel: Kernel, entry: Callable[..., Any]) -> Callable[..., Any]:
    """Return the code of a kernel with checks before it; a value for ``muntin.kernels.jit.guard``.

    To be set before anything is compiled.
    """

    def call(*arguments: Any) -> Any:
        pairs = zip(arguments, kernel.types, strict=True)
        for place, (argument, declared) in enumerate(pairs):
            if not _fits(argument, declared):
                raise TypeError(f"{kernel.name}: argument {place} is no {declared}: {argument!r}")
        return entry(*arguments)

    return call


def _fits(argument: Any, declared: Any) -> bool:
    """Return whether an argument is of a declared type."""
    if declared is int:
        return isinstance(argument, int | np.integer)
    if declared is float:
        return isinstance(argument, float)
    if hasattr(declared, "_fields"):
        return isinstance(argument, declared) and all(map(_fits, argument, fields_of(declared)))
    array, dimensions = get_args(declared)
    (scalar,) = get_args(get_args(array)[1])
    return (
        isinstance(argument, np.ndarray)
        and argument.dtype == np.dtype(scalar)
        and argument.ndim == dimensions
        and argument.flags.c_contiguous
    )
