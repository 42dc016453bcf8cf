"""What a query is and how it will be run: frozen, hashable, printable nodes.

Logical nodes (:mod:`muntin.plan.query`) come from the binder; physical ones
(:mod:`muntin.plan.join`) from the planner. Nothing here executes. Imports model only.
"""
