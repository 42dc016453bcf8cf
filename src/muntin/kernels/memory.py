"""What numba does not offer: asking for a cache line early, and reading at an address.

With :mod:`muntin.kernels.clock` the only home of llvmlite.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def _prefetch(context: Any, builder: Any, address: Any) -> Any:
    """Code that starts loading the cache line of an address; never fails, whatever the address."""
    raw = builder.bitcast(address, ir.IntType(8).as_pointer())
    whole = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [raw.type, whole, whole, whole])
    builder.call(
        builder.module.declare_intrinsic("llvm.prefetch", [raw.type], kind),
        [raw, whole(0), whole(3), whole(1)],
    )
    return context.get_dummy_value()


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Start loading the cache line of ``array[index]``."""
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        return _prefetch(context, builder, builder.gep(view.data, [arguments[1]]))

    return types.void(array, index), generate


@intrinsic
def prefetch_address(typing_context: Any, address: Any) -> Any:
    """Start loading the cache line at an address."""
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature
        return _prefetch(
            context, builder, builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        )

    return types.void(address), generate


def _loader(bits: int, kind: Any) -> Any:
    @intrinsic
    def load(typing_context: Any, address: Any) -> Any:
        """Return the number of so many bits at an address."""
        del typing_context

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            del context, signature
            return builder.load(builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer()))

        return kind(address), generate

    return load


load_word = _loader(64, types.int64)
load_half = _loader(32, types.int32)
