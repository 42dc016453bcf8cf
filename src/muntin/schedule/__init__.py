"""The order of work on a shared join: levels of windows, and the work queue of a scheduler.

The schedulers LWO, SWF and MQT are compiled (:mod:`muntin.kernels.shared_join`).

Knows numbers only: no rows, no plans, no clocks.
"""
