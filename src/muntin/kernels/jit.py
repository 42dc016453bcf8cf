"""The one place that compiles: flags, caching, and the progress a first start shows.

Kernels carry explicit signatures and are compiled when :func:`prepare` is called (or at their
first call), never at import. Compiled code is kept in numba's cache beside the source, or in the
user's cache folder when that is read-only, so only the first start on a machine pays for it.

numba takes a cached kernel for fresh as long as the file that defines it has not changed, but most of
a kernel is inlined from other files. So our stamp is the text of all of them.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])

_FLAGS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "boundscheck": False,
    "_nrt": False,
}
# Without numba's runtime (_nrt) kernels cannot allocate, and no array is reference-counted: counting at
# every call between kernels cost five times as much as the join itself. Callers pass scratch space in.

_kernels: list[tuple[str, Any, str]] = []
_parts: dict[str, list[tuple[str, Any, str]]] = {}
_prepared = False


def inline(function: Function) -> Function:
    """Compile a small function that kernels call; it has no life of its own outside them."""
    compiled: Any = numba.njit(forceinline=True, **_FLAGS)(function)
    return compiled  # type: ignore[no-any-return]


def kernel(signature: str, part: str = "") -> Callable[[Function], Function]:
    """Compile an entry point with the given signature, cached on disk; one of a ``part`` waits for :func:`prepare_part`."""

    def decorate(function: Function) -> Function:
        try:
            compiled: Any = numba.njit(cache=True, **_FLAGS)(function)
            compiled._cache._cache_file._source_stamp = _stamp()  # noqa: SLF001 (numba offers no public way to say it)
        except RuntimeError:
            # Neither the package's folder nor the user's cache folder can be written: compile at every start.
            compiled = numba.njit(**_FLAGS)(function)
        (_parts.setdefault(part, []) if part else _kernels).append(
            (function.__name__, compiled, signature)
        )
        return compiled  # type: ignore[no-any-return]

    return decorate


@cache
def _stamp() -> str:
    """What compiled kernels depend on: the text of every kernel file."""
    texts = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()


def prepare(report: Callable[[str], None] | None = None) -> float:
    """Make every registered kernel ready and return the seconds it took.

    A warm cache takes well under a second and prints nothing. A cold one tells after each kernel,
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
    """Make the kernels of a part ready that not every query needs: so the first query on a machine does not wait for them."""
    _compile(_parts.pop(part, []), _to_stderr)


def all_kernels() -> list[tuple[str, Any, str]]:
    """Name, compiled function and signature of every kernel that was imported, those of parts that were not prepared yet among them."""
    return [*_kernels, *(entry for part in _parts.values() for entry in part)]


def _compile(kernels: Sequence[tuple[str, Any, str]], say: Callable[[str], None]) -> None:
    for number, (name, compiled, signature) in enumerate(kernels, 1):
        start = time.perf_counter()
        compiled.compile(signature)
        if compiled.stats.cache_misses:
            say(
                f"muntin: compiled kernel {number} of {len(kernels)}, {name} ({time.perf_counter() - start:.1f} s, first start only)"
            )


def _to_stderr(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
