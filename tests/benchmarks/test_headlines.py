"""Headlines: selected from claims by prefix, omitted without figures, written into a README."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.headlines import HEADLINES, headlines
from benchmarks.pages import read_documents, with_headlines

DOCUMENTS = read_documents(Path(__file__).parents[2] / "docs" / "results")
JOIN: dict[str, Any] = {
    "claims": [{"claim": "Muntin's time over DuckDB's", "measured": 1.5}],
    "machine": {"cores": 2},
}


def test_a_headline_is_a_claim_in_other_words_with_a_link() -> None:
    lines = headlines({"join": JOIN}, "docs/results/").splitlines()
    assert lines[0] == "| measured, on 2 cores | ratio | page |"
    assert lines[2].endswith("| **1.5** | [join](docs/results/join.md) |")
    assert len(lines) == 3


def test_figures_of_several_machines_name_no_single_number_of_cores() -> None:
    assert "| measured, on one machine |" in headlines(
        {"join": JOIN, "window": {"claims": [], "machine": {"cores": 8}}}
    )


def test_without_figures_there_are_no_headlines() -> None:
    assert headlines({}) == "There are no figures yet."


def test_every_headline_has_its_claim_where_there_are_figures() -> None:
    for headline in HEADLINES:
        claims = [
            claim["claim"]
            for claim in DOCUMENTS.get(headline.benchmark, {"claims": [{"claim": headline.claim}]})[
                "claims"
            ]
        ]
        assert sum(claim.startswith(headline.claim) for claim in claims) == 1, headline.claim


def test_headlines_are_put_between_their_comments() -> None:
    text = "before <!-- headlines: begin --> old <!-- headlines: end --> after"
    once = with_headlines(text, {"join": JOIN})
    assert "**1.5**" in once
    assert "old" not in once
    assert once.startswith("before ")
    assert once.endswith(" after")
    assert with_headlines(once, {"join": JOIN}) == once
    assert with_headlines("no comments", {"join": JOIN}) == "no comments"
