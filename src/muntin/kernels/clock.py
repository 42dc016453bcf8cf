"""The time, for kernels that run by the clock.

The same monotonic clock that Python's ``time.monotonic_ns`` reads.
"""

from __future__ import annotations

import time
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_SECOND = 1_000_000_000
_CLOCK = time.CLOCK_MONOTONIC


@intrinsic
def now_ns(typing_context: Any) -> Any:
    """Nanoseconds of the monotonic clock."""
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature, arguments
        # libc's function by its name, so that compiled code can be cached: the address is
        # found again in every process.
        word, half = ir.IntType(64), ir.IntType(32)
        moment = ir.LiteralStructType([word, word])
        kind = ir.FunctionType(half, [half, moment.as_pointer()])
        module = builder.module
        function = module.globals.get("clock_gettime") or ir.Function(
            module, kind, name="clock_gettime"
        )
        with builder.goto_entry_block():
            place = builder.alloca(moment)
        builder.call(function, [half(_CLOCK), place])
        zero = half(0)
        seconds = builder.load(builder.gep(place, [zero, zero]))
        nanoseconds = builder.load(builder.gep(place, [zero, half(1)]))
        return builder.add(builder.mul(seconds, word(_SECOND)), nanoseconds)

    return types.int64(), generate
