"""Encode dataclasses as frames and decode them, driven by their annotations.

An object becomes JSON: dataclasses are objects by field name, tuples and lists are arrays, mappings
with string keys are objects and others arrays of pairs. Bytes, Arrow schemas and tables and NumPy
arrays become blobs of the frame, and the JSON holds their numbers. A missing field takes its
default, so fields can be added; anything else that does not match the annotations is an error. Safe
against hostile content: only the annotated types are built.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa

from muntin.runtime.frames import Buffer, damaged, pack, unpack

T = TypeVar("T")

_SCALARS = (bool, int, str)
_NUMBERS = "biuf"
"""The kinds of NumPy arrays that are stored: booleans, integers and reals, never objects."""


def encode(value: object, kind: str) -> bytes:
    """Return a dataclass as a frame."""
    blobs: list[Buffer] = []
    return pack(kind, _plain(value, blobs), blobs)


def decode(content: Buffer, kind: str, cls: type[T], where: str) -> T:
    """Return the dataclass in a frame.

    Raises
    ------
    CheckpointError
        When the frame is damaged, or holds anything but an object of that class.
    """
    value, blobs = unpack(content, kind, where)
    with _matching(where):
        result: T = _typed(value, cls, blobs)
    return result


def encode_values(values: Sequence[object], kind: str) -> bytes:
    """Return values as a frame; the first is a word that determines the types of the others."""
    blobs: list[Buffer] = []
    return pack(kind, [_plain(value, blobs) for value in values], blobs)


def decode_values(
    content: Buffer, kind: str, words: Mapping[str, tuple[Any, ...]], where: str
) -> tuple[Any, ...]:
    """Return the values in a frame; ``words`` has their types by word.

    Raises
    ------
    CheckpointError
        When the frame is damaged, or holds anything else.
    """
    value, blobs = unpack(content, kind, where)
    with _matching(where):
        word, *given = value
        return (
            word,
            *(_typed(one, kind, blobs) for one, kind in zip(given, words[word], strict=True)),
        )


@contextmanager
def _matching(where: str) -> Iterator[None]:
    """Turn a mismatch of types into an error that names the frame."""
    try:
        yield
    except (
        TypeError,
        ValueError,
        KeyError,
        IndexError,
        AttributeError,
        RecursionError,
        pa.ArrowException,
    ) as error:
        raise damaged(where) from error


# -- to JSON ---------------------------------------------------------------------------------


def _plain(value: Any, blobs: list[Buffer]) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, bytes | memoryview):
        blobs.append(value)
        return len(blobs) - 1
    if dataclasses.is_dataclass(value):
        return {
            field.name: _plain(getattr(value, field.name), blobs)
            for field in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: _plain(one, blobs) for key, one in value.items()}
        return [[_plain(key, blobs), _plain(one, blobs)] for key, one in value.items()]
    if isinstance(value, np.ndarray):
        assert value.dtype.kind in _NUMBERS, "state is kept in arrays of numbers"
        array = np.ascontiguousarray(value)
        blobs.append(memoryview(array.tobytes()))
        return {"type": array.dtype.str, "shape": list(value.shape), "blob": len(blobs) - 1}
    if isinstance(value, pa.Schema):
        blobs.append(value.serialize().to_pybytes())
        return len(blobs) - 1
    if isinstance(value, pa.Table):
        blobs.append(_stream_of(value))
        return len(blobs) - 1
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, np.integer | np.floating):
        return value.item()
    assert isinstance(value, Sequence | frozenset), (
        f"a {type(value).__name__} has no place in a frame"
    )
    return [_plain(one, blobs) for one in value]


def _stream_of(table: pa.Table) -> bytes:
    """Return a table as a compressed Arrow stream."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    stream: bytes = sink.getvalue().to_pybytes()
    return stream


# -- from JSON -------------------------------------------------------------------------------------


def _typed(value: Any, kind: Any, blobs: Sequence[memoryview]) -> Any:
    """Return a JSON value as an object of an annotated type; raise if it does not match."""
    origin = get_origin(kind)
    if origin is Union or origin is UnionType:
        return _one_of(value, get_args(kind), blobs)
    if origin in _CONTAINERS:
        return _CONTAINERS[origin](value, get_args(kind), blobs)
    if kind is Any:
        return value
    if kind in _LEAVES:
        return _LEAVES[kind](value, blobs)
    if dataclasses.is_dataclass(kind):
        return _object(value, kind, blobs)
    assert kind in _SCALARS, f"no frame holds a {kind}"
    return _checked(value, kind)


def _checked(value: Any, *kinds: type) -> Any:
    # Not isinstance: a boolean does not count as an integer here.
    if type(value) not in kinds:
        raise TypeError(f"expected {kinds}, not {type(value)}")
    return value


def _one_of(value: Any, kinds: Sequence[Any], blobs: Sequence[memoryview]) -> Any:
    for kind in kinds:
        if (kind is NoneType) == (value is None):
            return None if value is None else _typed(value, kind, blobs)
    raise TypeError("null where a value belongs")


def _object(value: Any, cls: Any, blobs: Sequence[memoryview]) -> Any:
    hints = _hints(cls)
    given = _checked(value, dict)
    return cls(**{name: _typed(one, hints[name], blobs) for name, one in given.items()})


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _blob(value: Any, blobs: Sequence[memoryview]) -> memoryview:
    blob: memoryview = blobs[_checked(value, int)]
    return blob


def _array(value: Any, _: Any, blobs: Sequence[memoryview]) -> Any:
    kind = np.dtype(_checked(value["type"], str))
    if kind.kind not in _NUMBERS:
        raise ValueError("an array of anything but numbers")
    # A copy, because whoever loads an array changes it in place.
    return np.frombuffer(_blob(value["blob"], blobs), kind).reshape(value["shape"]).copy()


def _tuple(value: Any, kinds: Sequence[Any], blobs: Sequence[memoryview]) -> Any:
    items = _checked(value, list)
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return tuple(_typed(one, kinds[0], blobs) for one in items)
    return tuple(_typed(one, kind, blobs) for one, kind in zip(items, kinds, strict=True))


def _list(value: Any, kinds: Sequence[Any], blobs: Sequence[memoryview]) -> Any:
    return [_typed(one, kinds[0], blobs) for one in _checked(value, list)]


def _mapping(value: Any, kinds: Sequence[Any], blobs: Sequence[memoryview]) -> Any:
    key, kind = kinds
    items = value.items() if isinstance(value, dict) else _checked(value, list)
    return {_typed(name, key, blobs): _typed(one, kind, blobs) for name, one in items}


_CONTAINERS: dict[Any, Callable[[Any, Any, Sequence[memoryview]], Any]] = {
    tuple: _tuple,
    list: _list,
    Sequence: _list,
    dict: _mapping,
    Mapping: _mapping,
    frozenset: lambda value, kinds, blobs: frozenset(_list(value, kinds, blobs)),
    np.ndarray: _array,
}
_LEAVES: dict[Any, Callable[[Any, Sequence[memoryview]], Any]] = {
    bytes: lambda value, blobs: bytes(_blob(value, blobs)),
    memoryview: _blob,
    float: lambda value, _: float(_checked(value, int, float)),
    pa.Table: lambda value, blobs: pa.ipc.open_stream(pa.py_buffer(_blob(value, blobs))).read_all(),
    pa.Schema: lambda value, blobs: pa.ipc.read_schema(pa.py_buffer(_blob(value, blobs))),
    Path: lambda value, _: Path(_checked(value, str)),
    type(None): lambda value, _: _checked(value, NoneType),
}
