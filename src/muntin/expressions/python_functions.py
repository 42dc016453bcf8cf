"""Python functions that expressions call, over Arrow arrays.

A function belongs to this process once it is loaded; connections then create it when an expression
first names its key. It gets one array per parameter, in pieces of up to a few thousand rows,
without the rows on which an argument is NULL: there its value is NULL, as with most functions of
SQL. What it returns is checked: an array of the declared type with one value per row.

A function that fails, or returns something else, is not a row that cannot be evaluated but a
mistake in a program: :class:`muntin.errors.FunctionError` suspends the queries that call it.
"""

from __future__ import annotations

import atexit
import hashlib
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from muntin.errors import FunctionError
from muntin.model.functions import FunctionSignature

Vectorized: TypeAlias = Callable[..., Any]
"""Takes one Arrow array per parameter and returns one with as many values."""

_loaded: dict[str, PythonFunction] = {}
"""The functions of this process, by key."""
atexit.register(_loaded.clear)  # they may refer to connections, and DuckDB complains if those stay


@dataclass(frozen=True)
class PythonFunction:
    """A declared function with its code, and the Arrow types of its parameters and its result."""

    signature: FunctionSignature
    code: Vectorized
    parameters: tuple[pa.DataType, ...]
    result: pa.DataType

    def values(self, columns: Iterable[pa.Array | pa.ChunkedArray]) -> pa.Array:
        """Return the values of the function on some rows; raise if it fails."""
        arrays = [
            _joined(column).cast(kind)
            for column, kind in zip(columns, self.parameters, strict=True)
        ]
        known = np.ones(len(arrays[0]), bool)
        for array in arrays:
            if array.null_count:
                known &= array.is_valid().to_numpy(zero_copy_only=False)
        if known.all():
            return self._called(arrays)
        if not known.any():
            return pa.nulls(len(known), self.result)
        values = self._called([array.filter(pa.array(known)) for array in arrays])
        return values.take(pa.array(np.cumsum(known) - 1, mask=~known))

    def _called(self, arrays: list[pa.Array]) -> pa.Array:
        """Return what the function returns for arrays without NULLs, checked."""
        rows = len(arrays[0])
        if not rows:
            return pa.nulls(0, self.result)
        try:
            values = self.code(*arrays)
        except Exception as error:
            reason = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
            raise self._failed(f"failed{_place_of(error)}: {reason}".rstrip(": ")) from error
        if not isinstance(values, pa.Array | pa.ChunkedArray):
            kind = f"{type(values).__module__}.{type(values).__qualname__}"
            raise self._failed(f"returned {kind} instead of a pyarrow.Array")
        if len(values) != rows:
            raise self._failed(f"returned {len(values):,} values for {rows:,} rows")
        if values.type != self.result:
            raise self._failed(f"returned {values.type}, but is declared to return {self.result}")
        return _joined(values)

    def _failed(self, what: str) -> FunctionError:
        return FunctionError(
            f"the function {self.signature.name} {what}",
            hint="Correct the function, declare it again and register its queries again",
        )


def _joined(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _place_of(error: BaseException) -> str:
    """Return where in the code of the function an error was raised."""
    frames = traceback.extract_tb(error.__traceback__)[1:]
    if not frames:
        return ""
    outermost = frames[0].filename
    frame = [each for each in frames if each.filename == outermost][-1]
    return f" in {Path(frame.filename).name}, line {frame.lineno}"


def load(functions: Iterable[PythonFunction]) -> None:
    """Make functions available to expressions in this process."""
    for function in functions:
        _loaded[function.signature.key] = function


def unload(key: str) -> None:
    """Forget a function; nothing calls it any more."""
    _loaded.pop(key, None)


def loaded(key: str) -> PythonFunction | None:
    """Return the function with a key, if it is loaded."""
    return _loaded.get(key)


def fingerprint_of(code: Vectorized) -> str:
    """Return a text that is equal for functions with equal code.

    It covers the bytecode, the constants, the defaults and the values that a function closes over,
    as far as they are plain; of other callables only the name.
    """
    parts: list[str] = [f"{getattr(code, '__module__', '')}"]
    compiled = getattr(code, "__code__", None)
    if isinstance(compiled, CodeType):
        parts += _code_parts(compiled)
        parts.append(_plain(getattr(code, "__defaults__", None)))
        for cell in getattr(code, "__closure__", None) or ():
            try:
                parts.append(_plain(cell.cell_contents))
            except ValueError:  # not assigned yet
                parts.append("empty")
    else:
        parts.append(getattr(code, "__qualname__", type(code).__qualname__))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]


def _code_parts(compiled: CodeType) -> list[str]:
    parts = [compiled.co_code.hex(), repr(compiled.co_names), repr(compiled.co_varnames)]
    for constant in compiled.co_consts:
        parts += _code_parts(constant) if isinstance(constant, CodeType) else [_plain(constant)]
    return parts


def _plain(value: object) -> str:
    """Return a text for a value that is the same in every process."""
    if isinstance(value, tuple):
        return f"({','.join(map(_plain, value))})"
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return repr(value)
    if isinstance(value, frozenset):
        return f"{{{','.join(sorted(map(_plain, value)))}}}"
    return f"{type(value).__module__}.{type(value).__qualname__}"
