"""Convert Arrow arrays of lists, structs and maps column by column.

The children are converted by the rules of plain columns; the offsets of values and the NULLs
stay as they are. Values below a NULL are ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pat

Convert: TypeAlias = Callable[[pa.Array, pa.DataType], pa.Array]


def is_list(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds lists."""
    return bool(pat.is_list(kind) or pat.is_large_list(kind) or pat.is_fixed_size_list(kind))


def are_nested_alike(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether both types are lists, structs or maps."""
    return any(test(given) and test(wanted) for test in (is_list, pat.is_struct, pat.is_map))


def convert_nested(array: pa.Array, kind: pa.DataType, convert: Convert) -> pa.Array:
    """Return the array as ``kind``, its children converted by ``convert``; raise as that does."""
    if not array.null_count < len(array):
        return pa.nulls(len(array), kind)
    if pat.is_struct(kind):
        return _structs(array, kind, convert)
    present = array.drop_null()
    return (_maps if pat.is_map(kind) else _lists)(present, kind, convert, array.is_null())


def _lists(present: pa.Array, kind: pa.DataType, convert: Convert, missing: pa.Array) -> pa.Array:
    items = convert(present.flatten(), kind.value_type)
    sizes = pc.list_value_length(present).to_numpy()
    if not pat.is_fixed_size_list(kind):
        maker = pa.LargeListArray if pat.is_large_list(kind) else pa.ListArray
        return maker.from_arrays(
            _offsets(sizes, missing, large=pat.is_large_list(kind)), items, type=kind, mask=missing
        )
    size = kind.list_size
    if (sizes != size).any():
        raise ValueError(f"not {size} elements")
    if missing.true_count:  # a list that is NULL takes the room of one all the same
        absent = np.repeat(missing.to_numpy(zero_copy_only=False), size)
        items = items.take(pa.array(np.cumsum(~absent) - 1, mask=absent))
    return pa.FixedSizeListArray.from_arrays(items, type=kind, mask=missing)


def _maps(present: pa.Array, kind: pa.DataType, convert: Convert, missing: pa.Array) -> pa.Array:
    offsets = present.offsets.to_numpy()
    begin, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    keys, items = present.keys.slice(begin, count), present.items.slice(begin, count)
    if keys.null_count:
        raise ValueError("entries of a map are pairs of a key and a value")
    sizes = np.diff(offsets)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    # Arrow cannot group by nested keys, which are rare.
    names = pa.array(map(repr, keys.to_pylist())) if pat.is_nested(keys.type) else keys
    distinct = pa.table({"owner": owner, "key": names}).group_by(["owner", "key"]).aggregate([])
    if len(distinct) < count:
        raise ValueError("a key of the map appears twice")
    return pa.MapArray.from_arrays(
        _offsets(sizes, missing, large=False),
        convert(keys, kind.key_type),
        convert(items, kind.item_type),
        type=kind,
        mask=missing,
    )


def _structs(array: pa.Array, kind: pa.DataType, convert: Convert) -> pa.Array:
    given = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
    unknown = given.keys() - {field.name for field in kind}
    if unknown:
        raise ValueError(f"there is no field {min(map(repr, unknown))}")
    if len(given) < array.type.num_fields:
        raise ValueError("a field of the struct appears twice")
    fields = [
        convert(given[field.name], field.type)
        if field.name in given
        else pa.nulls(len(array), field.type)
        for field in kind
    ]
    return pa.StructArray.from_arrays(fields, fields=list(kind), mask=array.is_null())


def _offsets(sizes: npt.NDArray[np.int64], missing: pa.Array, *, large: bool) -> pa.Array:
    """Return where each value begins, given the sizes of those that are there; NULLs are empty."""
    spread = np.zeros(len(missing) + 1, np.int64)
    spread[1:][~missing.to_numpy(zero_copy_only=False)] = sizes
    return pa.array(np.cumsum(spread), pa.int64() if large else pa.int32())
