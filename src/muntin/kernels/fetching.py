"""Asking the processor for memory before it is needed.

A probe is a chain of dependent cache misses: bucket head, then row. Both are known some events ahead,
so the join loop asks for them early; measured on windows of 600,000 rows this halves the time of a join.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from muntin.kernels.compiling import inline
from muntin.kernels.layout import BUCKETS, HEADS, KEY_COUNT, KEYS, MODULAR, NEXT, STEP_ARGUMENTS, STEP_INDEX, STEP_STORE, TAIL
from muntin.kernels.rows import bucket_of, mix, newest_in, row_address


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Start loading the cache line of ``array[index]``; never fails, whatever the index."""
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.gep(view.data, [arguments[1]])
        raw = builder.bitcast(address, ir.IntType(8).as_pointer())
        whole = ir.IntType(32)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [raw.type], ir.FunctionType(ir.VoidType(), [raw.type, whole, whole, whole])
        )
        builder.call(function, [raw, whole(0), whole(3), whole(1)])
        return context.get_dummy_value()

    return types.void(array, index), generate


@inline
def incoming_bucket(indexes, x, incoming, offset):
    """The bucket of an index to which a row that has not come yet belongs."""
    hashed = np.uint64(0)
    code = np.int64(0)
    for c in range(indexes[x, KEY_COUNT]):
        code = incoming[offset + indexes[x, KEYS + c]]
        hashed = mix(np.int64(hashed) ^ code)
    return bucket_of(hashed, code, indexes[x, MODULAR], indexes[x, BUCKETS])


@inline
def probed_bucket(indexes, program, at, incoming, offset):
    """The bucket into which a row that has not come yet will look first."""
    x = program[at + STEP_INDEX]
    hashed = np.uint64(0)
    code = np.int64(0)
    for c in range(indexes[x, KEY_COUNT]):
        code = incoming[offset + program[at + STEP_ARGUMENTS + 2 * c + 1]]
        hashed = mix(np.int64(hashed) ^ code)
    return bucket_of(hashed, code, indexes[x, MODULAR], indexes[x, BUCKETS])


@inline
def fetch_heads(halves, indexes, first_index, program, at, s, incoming, offset):
    """Ask for the bucket heads that a coming row will read and change."""
    x = program[at + STEP_INDEX]
    if x >= 0:
        prefetch(halves, indexes[x, HEADS] + probed_bucket(indexes, program, at, incoming, offset))
    for own in range(first_index[s], first_index[s + 1]):
        prefetch(halves, indexes[own, HEADS] + incoming_bucket(indexes, own, incoming, offset))


@inline
def fetch_row(words, halves, stores, indexes, program, at, incoming, offset):
    """Ask for the first row that a coming row will meet."""
    x = program[at + STEP_INDEX]
    if x >= 0:
        s = program[at + STEP_STORE]
        seq = newest_in(halves, stores, s, indexes, x, probed_bucket(indexes, program, at, incoming, offset))
        if stores[s, TAIL] <= seq < stores[s, NEXT]:
            prefetch(words, row_address(stores, s, seq))
