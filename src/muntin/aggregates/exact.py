"""Results from exact sums: decimals, quotients and variances, rounded once or nearly so."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from muntin.model.arrays import Integers, Mask, Reals

_SPLITTER = 134_217_729.0
_LIMIT = 10**38
_TWO_64 = 2.0**64


def fits_decimal(words: Integers) -> Mask:
    """Return a mask of the sums of three words that fit into a decimal of 38 digits."""
    low, middle, high = words[:, 0].view(np.uint64), words[:, 1], words[:, 2]
    top, bottom = np.int64(_LIMIT >> 64), np.uint64(_LIMIT & (2**64 - 1))
    least, last = np.int64((-_LIMIT) >> 64), np.uint64((-_LIMIT) & (2**64 - 1))
    below = (middle < top) | ((middle == top) & (low < bottom))
    above = (middle > least) | ((middle == least) & (low > last))
    fits: Mask = (high == (middle >> 63)) & below & above
    return fits


def decimals(words: Integers, valid: Mask, kind: pa.DataType) -> pa.Array:
    """Return sums of three words, of which the highest is only a sign, as 128-bit decimals."""
    values = pa.py_buffer(np.ascontiguousarray(words[:, :2]))
    mask = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(words), [mask, values])


def quotients(counts: Integers, whole: Integers | None, reals: Reals | None, scale: int) -> Reals:
    """Return means, from one of the two sums; ``scale`` is that of decimals."""
    divisors = np.maximum(counts, 1).astype(np.float64)
    if whole is None:
        assert reals is not None, "one of the two sums is given"
        means: Reals = reals[:, 0] / divisors
        return means
    low, middle, high = whole[:, 0], whole[:, 1], whole[:, 2]
    wide = (high * _TWO_64 + middle.view(np.uint64)) * _TWO_64 + low.view(np.uint64)
    wide = np.where(high == (middle >> 63), middle * _TWO_64 + low.view(np.uint64), wide)
    sums = np.where((middle == (low >> 63)) & (high == middle), low.astype(np.float64), wide)
    return sums / divisors / 10.0**scale if scale else sums / divisors


def product_parts(left: Reals, right: Reals) -> tuple[Reals, Reals]:
    """Return products as exact sums of two numbers (Dekker), barring overflow and underflow."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        products = left * right
        return products, _product_error(left, right, products)


def _product_error(left: Reals, right: Reals, product: Reals) -> Reals:
    """Return the difference between the exact product and the rounded one."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        big_left, big_right = left * _SPLITTER, right * _SPLITTER
        left_high, right_high = big_left - (big_left - left), big_right - (big_right - right)
        left_low, right_low = left - left_high, right - right_high
        rest = (
            (left_high * right_high - product) + left_high * right_low + left_low * right_high
        ) + left_low * right_low
    exact: Reals = np.where(np.isfinite(rest), rest, 0.0)
    return exact


def multiply_add(left: Reals, right: Reals, addend: Reals) -> Reals:
    """Return left * right + addend, rounded once, as a fused multiply-add does."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        product = left * right
        total = product + addend
        shift = total - product
        rest = (product - (total - shift)) + (addend - shift) + _product_error(left, right, product)
    exact: Reals = np.where(np.isfinite(rest), total + rest, total)
    return exact


def co_deviations(counts: Integers, left: Reals, right: Reals, products: Reals) -> Reals:
    """Return ``n * sum(l * r) - sum(l) * sum(r)``, given the three sums in two parts each.

    Computed in double-double precision, so that numbers far from zero do not cancel.
    """
    n = np.maximum(counts, 1).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        scaled = n * products[:, 0]
        scaled_rest = _product_error(n, products[:, 0], scaled) + n * products[:, 1]
        crossed = left[:, 0] * right[:, 0]
        crossed_rest = (
            _product_error(left[:, 0], right[:, 0], crossed)
            + left[:, 0] * right[:, 1]
            + left[:, 1] * right[:, 0]
        )
        found: Reals = (scaled - crossed) + (scaled_rest - crossed_rest)
    return found


def degrees(counts: Integers, *, sample: bool) -> Reals:
    """Return the divisors of deviations: ``n * (n - 1)`` for a sample, else ``n * n``."""
    n = np.maximum(counts, 1).astype(np.float64)
    found: Reals = n * np.maximum(n - 1.0, 1.0) if sample else n * n
    return found


def variances(counts: Integers, sums: Reals, squares: Reals, *, sample: bool) -> Reals:
    """Return variances from counts, sums and sums of squares, each sum in two parts."""
    numerator = co_deviations(counts, sums, sums, squares)
    found = np.maximum(numerator, 0.0) / degrees(counts, sample=sample)
    result: Reals = np.where(np.isnan(numerator), np.nan, found)
    return result
