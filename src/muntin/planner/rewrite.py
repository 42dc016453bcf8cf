"""Rewrite plan trees by a sequence of rules, each from a tree to an equivalent tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from muntin.plan.node import Node
from muntin.plan.query import Query
from muntin.planner.rules.limit_numbers import limit_numbers
from muntin.planner.rules.merge_conditions import merge_conditions
from muntin.planner.rules.steady_sessions import steady_sessions

TreeRule: TypeAlias = Callable[[Node], Node]

TREE_RULES: tuple[TreeRule, ...] = (merge_conditions, limit_numbers, steady_sessions)
"""The rules in the order in which they are applied, each to every node, children first."""


def rewrite(query: Query) -> Query:
    """Return a query with all rules applied; the same query if none applies."""
    root = query.root
    for rule in TREE_RULES:
        root = root.transform(rule)
    return query if root is query.root else replace(query, root=root)
