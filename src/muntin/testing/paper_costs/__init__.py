"""The papers' cost formulas, in comparisons per second or seconds of response time.

Tests and benchmarks compare them with measurements. The planner compares plans in seconds of work
per second (:mod:`muntin.planner.local_orders`); only the orders of GENERAL LAZY, which depend on
the interval of re-evaluation, come from a formula of the papers
(:mod:`muntin.planner.lazy_orders`).
"""
