"""The papers' cost formulas, in comparisons per second or seconds of response time.

The planner compares plans in seconds of work per second (:mod:`muntin.planner.local_orders`). These
functions are what the papers print: the benchmarks compare them with measurements, and the planner
takes from them only the orders of GENERAL LAZY, which depend on the interval of re-evaluation.
"""
