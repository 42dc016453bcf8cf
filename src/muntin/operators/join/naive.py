"""The naive join that [Golab03, section 3] compares with: every new row evaluates one global order.

The new row takes part at its source's place in the order instead of coming first, so the steps
before it look at rows that cannot match.
"""

from __future__ import annotations

from typing import ClassVar

from muntin.operators.join.eager import EagerTactic


class NaiveTactic(EagerTactic):
    """Joins rows as they arrive, all in the same order of sources."""

    is_naive: ClassVar[bool] = True
