"""The one place that compiles: flags, caching, and the progress a first start shows.

Kernels carry explicit signatures and are compiled when :func:`prepare` is called (or at their first
call), never at import. Compiled code is kept in numba's cache beside the source, or in the user's
cache folder when that is read-only, so only the first start on a machine pays for it.

numba takes a cached kernel for fresh as long as the file that defines it has not changed, but most
of a kernel is inlined from other files. So our stamp is the text of all of them. A cache that
cannot be read, since it is damaged or names what an older version had, is emptied.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

import numba
import numpy as np
from numba.core.caching import NullCache

Function = TypeVar("Function", bound=Callable[..., Any])

_FLAGS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "boundscheck": False,
    "_nrt": False,
}
# Without numba's runtime (_nrt) kernels cannot allocate, and no array is reference-counted:
# counting at every call between kernels cost five times as much as the join itself. Callers pass
# scratch space in.

_kernels: list[Kernel] = []
_parts: dict[str, list[Kernel]] = {}
_prepared = False
guard: Callable[[Kernel, Callable[..., Any]], Callable[..., Any]] | None = None
"""Wraps the code of kernels that are compiled from now on; see ``muntin.testing.kernel_checks``."""


def inline(function: Function) -> Function:
    """Compile a small function that kernels call, and only they."""
    compiled: Any = numba.njit(forceinline=True, **_FLAGS)(function)
    return compiled  # type: ignore[no-any-return]


class Kernel:
    """An entry point of compiled code: one signature, called without numba's dispatch.

    Dispatch looks up the type of every argument at every call, which takes microseconds for a
    named tuple. The compiled code itself checks only dimensions and sizes of items.
    """

    def __init__(self, function: Callable[..., Any], types: Sequence[Any]) -> None:
        self.name = function.__name__
        self.types = types
        self._entry: Callable[..., Any] | None = None
        try:
            self._compiled: Any = numba.njit(cache=True, **_FLAGS)(function)
            file = self._compiled._cache._cache_file  # noqa: SLF001 (numba has no public way)
            file._source_stamp = _stamp_of(function)  # noqa: SLF001
        except RuntimeError:
            # Neither the package's folder nor the user's cache folder can be written: compile at
            # every start.
            self._compiled = numba.njit(**_FLAGS)(function)

    def __call__(self, *arguments: Any) -> Any:
        """Run the compiled code, which is compiled now unless it was prepared."""
        if self._entry is None:
            self.compile()
            return self(*arguments)
        return self._entry(*arguments)

    def compile(self) -> bool:
        """Make the code ready, and return whether the cache on disk had it."""
        if self._entry is None:
            text = isinstance(self.types[0], str)
            types = self.types[0] if text else tuple(map(_type, self.types))
            try:
                self._compiled.compile(types)
            except Exception:  # noqa: BLE001 (if it was not the cache, compiling fails again)
                self._empty_cache()
                self._compiled.compile(types)
            if text:
                self._entry = self._compiled
            else:
                self._compiled.disable_compile()
                (compiled,) = self._compiled.overloads.values()
                self._entry = compiled.entry_point
                if guard is not None:
                    self._entry = guard(self, compiled.entry_point)
        return not self._compiled.stats.cache_misses

    def _empty_cache(self) -> None:
        """Forget what the cache has of this kernel; without write access, do without a cache."""
        cached = self._compiled._cache  # noqa: SLF001 (see above)
        try:
            cached.flush()
        except OSError:
            self._compiled._cache = NullCache()  # noqa: SLF001


def kernel(*types: Any, part: str = "") -> Callable[[Function], Function]:
    """Compile an entry point, cached on disk; one of a ``part`` waits for :func:`prepare_part`.

    ``types`` are those of the parameters: ``int``, ``float``, an array type or a named tuple of
    :mod:`muntin.kernels.arrays`; or one string, a signature in numba's notation.
    """

    def decorate(function: Function) -> Function:
        entry: Any = Kernel(function, types)
        (_parts.setdefault(part, []) if part else _kernels).append(entry)
        return entry  # type: ignore[no-any-return]

    return decorate


def _type(declared: Any) -> Any:
    """Return numba's type of a declared one."""
    if declared is int:
        return numba.int64
    if declared is float:
        return numba.float64
    if hasattr(declared, "_fields"):
        fields = fields_of(declared)
        return numba.types.BaseTuple.from_types(tuple(map(_type, fields)), declared)
    array, dimensions = get_args(declared)
    (scalar,) = get_args(get_args(array)[1])
    return numba.types.Array(numba.from_dtype(np.dtype(scalar)), dimensions, "C")


@cache
def fields_of(declared: Any) -> tuple[Any, ...]:
    """Return the declared types of the fields of a named tuple."""
    return tuple(get_type_hints(declared, include_extras=True).values())


def _stamp_of(function: Callable[..., Any]) -> str:
    """Return the stamp of a kernel; one that is defined elsewhere also depends on its own file."""
    source = Path(function.__code__.co_filename)
    own = "" if source.parent == Path(__file__).parent else source.read_text()
    return _stamp() + hashlib.sha256(own.encode()).hexdigest()


@cache
def _stamp() -> str:
    """Return what compiled kernels depend on: a hash of the text of every kernel file."""
    texts = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()


def prepare(report: Callable[[str], None] | None = None) -> float:
    """Make every registered kernel ready and return the seconds it took.

    A warm cache takes well under a second and prints nothing. A cold one reports after each kernel,
    on stderr unless ``report`` is given, how far it is.
    """
    global _prepared  # noqa: PLW0603 (compiled code is per process, and so is this flag)
    if _prepared:
        return 0.0
    begin = time.perf_counter()
    _compile(_kernels, report or _to_stderr)
    _prepared = True
    return time.perf_counter() - begin


def prepare_part(part: str) -> None:
    """Make the kernels of a part ready that not every query needs.

    So the first query on a machine does not wait for them.
    """
    _compile(_parts.pop(part, []), _to_stderr)


def all_kernels() -> list[Kernel]:
    """Return every kernel that was imported, those of parts that were not prepared yet included."""
    return [*_kernels, *(entry for part in _parts.values() for entry in part)]


def _compile(kernels: Sequence[Kernel], say: Callable[[str], None]) -> None:
    for number, each in enumerate(kernels, 1):
        start = time.perf_counter()
        if not each.compile():
            seconds = time.perf_counter() - start
            say(
                f"muntin: compiled kernel {number} of {len(kernels)}, {each.name}"
                f" ({seconds:.1f} s, first start only)"
            )


def _to_stderr(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
