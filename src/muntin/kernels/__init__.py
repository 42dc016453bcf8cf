"""Compiled loops over flat arrays: the only home of numba.

A kernel is a plain function over arrays and scalars, made by the decorator in
:mod:`muntin.kernels.jit`. Kernels know rows as integers (coordinate, position, codes) and
return integers; what they mean is the business of ``state`` and ``operators``. Imports numpy only.
"""
