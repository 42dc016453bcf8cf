"""Sums that never lose a bit, so that what was added can be taken away again.

Whole numbers are added up in three 64-bit words, which 2^63 numbers of 128 bits cannot overflow.
Floating-point numbers are added up in fixed point: every limb holds 32 bits of the sum in a 64-bit
integer, limb 0 begins at the power ``base`` of two. Adding touches three limbs and carries nothing;
carries are worked off when a sum is read, which happens at the end of every run that touched it.
The sum that is read is the exact one, rounded once.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from muntin.kernels.arrays import Integers, RealTable, SlotArrays, Table
from muntin.kernels.jit import inline, kernel

LOW_BITS = np.int64(0xFFFFFFFF)
_MANTISSA = np.int64((1 << 52) - 1)
_HIDDEN = np.int64(1 << 52)
_TOP = np.int64(-0x8000000000000000)


@inline
def is_below(left, right):
    """Return whether a word is less than another, both without a sign."""
    return (left ^ _TOP) < (right ^ _TOP)


@inline
def add_word(sums, group, word, value):
    """Add a word to one of the three, and its carry to those above."""
    before = sums[group, word]
    after = before + value
    sums[group, word] = after
    if is_below(after, before) and word < 2:
        above = sums[group, word + 1]
        sums[group, word + 1] = above + 1
        if above == -1 and word < 1:
            sums[group, word + 2] += 1


@kernel(SlotArrays, Integers, Integers, Integers, Table, Table, part="pipelines")
def sum_slots(slots, weights, low, high, sums, out):
    """Add up numbers of 128 bits with weights +1, -1 and 0.

    ``out`` as in ``count_slots``, a row of three words each.
    """
    groups, run_rows, run_slots, slot_groups = slots
    for run in range(run_rows.shape[0] - 1):
        for slot in range(run_slots[run], run_slots[run + 1]):
            for word in range(3):
                out[2 * slot, word] = sums[slot_groups[slot], word]
        for i in range(run_rows[run], run_rows[run + 1]):
            if weights[i] == 0:
                continue
            lower = low[i]
            upper = high[i]
            if weights[i] < 0:
                lower = -lower
                upper = ~upper
                if lower == 0:
                    upper += 1
            add_word(sums, groups[i], 0, lower)
            add_word(sums, groups[i], 1, upper)
            # The sign of the number fills the third word; -2^127 is the one number whose negative
            # has another sign.
            extended = upper >> 63
            if weights[i] < 0 and high[i] == _TOP and low[i] == 0:
                extended = 0
            sums[groups[i], 2] += extended
        for slot in range(run_slots[run], run_slots[run + 1]):
            for word in range(3):
                out[2 * slot + 1, word] = sums[slot_groups[slot], word]


@inline
def add_scaled(limbs, group, sign, mantissa, offset):
    """Add ``sign * mantissa * 2^offset``.

    The mantissa has up to 54 bits, the offset counts from the lowest bit of limb 0.
    """
    limb = offset >> 5
    shift = offset & 31
    lower = (mantissa & LOW_BITS) << shift
    upper = (mantissa >> 32) << shift
    limbs[group, limb] += sign * (lower & LOW_BITS)
    limbs[group, limb + 1] += sign * ((lower >> 32) + (upper & LOW_BITS))
    limbs[group, limb + 2] += sign * (upper >> 32)


@inline
def add_bits(limbs, specials, group, bits, weight, base):
    """Add the floating-point number with these bits, or take it away.

    Numbers that are not finite are counted apart.
    """
    exponent = (bits >> 52) & 0x7FF
    mantissa = bits & _MANTISSA
    if exponent == 0x7FF:
        if mantissa != 0:
            specials[group, 2] += weight
        elif bits < 0:
            specials[group, 1] += weight
        else:
            specials[group, 0] += weight
        return
    if exponent == 0:
        exponent = 1
    else:
        mantissa |= _HIDDEN
    if mantissa != 0:
        add_scaled(limbs, group, -weight if bits < 0 else weight, mantissa, exponent - 1075 - base)


@inline
def bit_length(value):
    """Return the number of bits of a number from 1 to 2^32 - 1."""
    length = 0
    for step in (16, 8, 4, 2, 1):
        if value >> step:
            value >>= step
            length += step
    return length + 1


@inline
def round_sum(limbs, group, scratch, base):
    """Return the sum of a group rounded to 53 bits.

    Sign, mantissa, and the power of two of its lowest bit. Carries are worked off first.
    """
    count = limbs.shape[1]
    carry = np.int64(0)
    for limb in range(count - 1):
        value = limbs[group, limb] + carry
        limbs[group, limb] = value & LOW_BITS
        carry = value >> 32
    limbs[group, count - 1] += carry
    negative = limbs[group, count - 1] < 0
    borrow = np.int64(1)
    top = -1
    for limb in range(count):
        value = limbs[group, limb]
        if negative:
            value = (~value & LOW_BITS) + borrow
            borrow = value >> 32
            value &= LOW_BITS
        scratch[limb] = value
        if value != 0:
            top = limb
    if top < 0:
        return 1, np.int64(0), base
    first = scratch[top]
    second = scratch[top - 1] if top >= 1 else np.int64(0)
    third = scratch[top - 2] if top >= 2 else np.int64(0)
    rest = np.int64(0)
    for limb in range(top - 2):
        rest |= scratch[limb]
    need = 54 - bit_length(first)
    if need <= 32:
        mantissa = (first << need) | (second >> (32 - need))
        rest |= third | (second & ((np.int64(1) << (32 - need)) - 1))
    else:
        mantissa = (first << need) | (second << (need - 32)) | (third >> (64 - need))
        rest |= third & ((np.int64(1) << (64 - need)) - 1)
    half = mantissa & 1
    mantissa >>= 1
    if half != 0 and (rest != 0 or (mantissa & 1) != 0):
        mantissa += 1
    return -1 if negative else 1, mantissa, base + 32 * top - need + 1


@inline
def read_sum(limbs, specials, group, scratch, base, out, row):
    """Write a sum as two numbers: the sum rounded, and what is then left of it, rounded again."""
    if specials[group, 2] != 0 or (specials[group, 0] != 0 and specials[group, 1] != 0):
        out[row, 0] = np.nan
        out[row, 1] = 0.0
        return
    if specials[group, 0] != 0 or specials[group, 1] != 0:
        out[row, 0] = np.inf if specials[group, 0] != 0 else -np.inf
        out[row, 1] = 0.0
        return
    sign, mantissa, power = round_sum(limbs, group, scratch, base)
    out[row, 0] = sign * math.ldexp(np.float64(mantissa), np.int32(power))
    out[row, 1] = 0.0
    if mantissa == 0:
        return
    offset = power - base
    if offset < 0:
        mantissa >>= -offset
        offset = 0
    add_scaled(limbs, group, -sign, mantissa, offset)
    left_sign, left, left_power = round_sum(limbs, group, scratch, base)
    out[row, 1] = left_sign * math.ldexp(np.float64(left), np.int32(left_power))
    add_scaled(limbs, group, sign, mantissa, offset)


class LimbArrays(NamedTuple):
    """Sums of floating-point numbers: limbs and special values per group, and scratch of a sum."""

    limbs: Table
    specials: Table
    scratch: Integers


@kernel(SlotArrays, Integers, Integers, Integers, int, LimbArrays, RealTable, part="pipelines")
def real_slots(slots, weights, bits, more, base, sums, out):
    """Add up floating-point numbers, given by their bits; ``more`` has second parts, or nothing.

    ``out`` as in ``count_slots``, a row of two numbers each. Every number fits between ``base`` and
    the second limb from the top.
    """
    groups, run_rows, run_slots, slot_groups = slots
    limbs, specials, scratch = sums
    for run in range(run_rows.shape[0] - 1):
        for slot in range(run_slots[run], run_slots[run + 1]):
            read_sum(limbs, specials, slot_groups[slot], scratch, base, out, 2 * slot)
        for i in range(run_rows[run], run_rows[run + 1]):
            if weights[i] != 0:
                add_bits(limbs, specials, groups[i], bits[i], weights[i], base)
                if more.shape[0] != 0:
                    add_bits(limbs, specials, groups[i], more[i], weights[i], base)
        for slot in range(run_slots[run], run_slots[run + 1]):
            read_sum(limbs, specials, slot_groups[slot], scratch, base, out, 2 * slot + 1)
