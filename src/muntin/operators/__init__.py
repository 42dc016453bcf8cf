"""Running operators: columnar batches in, columnar results out.

An operator's plan node is its configuration; its state is in ``state``, its inner loop a kernel
call that returns positions. No I/O, no wall clock. Imports state, kernels, plan and expressions.
"""
