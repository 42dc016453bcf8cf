"""Claims have two sides, and JSON says which."""

from __future__ import annotations

import json

import pytest

from muntin.bench.report import Claim, Report


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        (Claim("time", 1.3, 1.3), True),
        (Claim("time", 1.31, 1.3), False),
        (Claim("rate", 2, 2, "at least"), True),
        (Claim("rate", 1.99, 2, "at least"), False),
    ],
)
def test_a_claim_holds_up_to_its_bound(claim: Claim, holds: bool) -> None:  # noqa: FBT001 (a column of the table)
    assert claim.holds is holds
    document = json.loads(Report("name", "Why?", [{"figure": 1}], [claim]).to_json())
    assert document["claims"] == [
        {"claim": claim.text, "measured": claim.measured, "side": claim.side, "bound": claim.bound, "holds": holds},
    ]
