"""Rule: choose the algorithm of [Golab03]: EAGER, unless the settings name another.

Sound because all algorithms find the same results, only later. A query that emits changes needs
every row in its turn, so it is always EAGER.
"""

from __future__ import annotations

from dataclasses import replace

from muntin.model.settings import Algorithm
from muntin.plan.query import Emit
from muntin.planner.draft import JoinDraft


def choose_algorithm(draft: JoinDraft) -> JoinDraft:
    """Choose the algorithm."""
    given = draft.settings.join.algorithm
    if draft.query.emit is Emit.CHANGES or given is None:
        return replace(draft, algorithm=Algorithm.EAGER)
    return replace(draft, algorithm=given)
