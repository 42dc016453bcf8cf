"""Rule: decide whether the join retracts results itself, or an operator above it does.

Sound because both send the same changes: a result ends when its first row leaves. The join must
retract if windows count rows, since then it is not known in advance when a row leaves.
"""

from __future__ import annotations

from dataclasses import replace

from muntin.model.settings import Strategy
from muntin.plan.query import Emit
from muntin.planner.draft import JoinDraft
from muntin.planner.strategies import choose_strategy


def choose_retraction(draft: JoinDraft) -> JoinDraft:
    """Choose the strategy of a join that emits changes."""
    if draft.query.emit is not Emit.CHANGES or not draft.query.retracts:
        return draft
    strategy, text = choose_strategy(draft.query, draft.settings)
    return replace(draft, strategy=text, retracting=strategy is Strategy.NEGATIVE)
