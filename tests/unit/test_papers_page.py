"""The page about the papers names tests, modules, settings and benchmarks that exist.

A row shows that a feature works by tests or by the page of a benchmark; one that works in part says
why. Tests are searched for in the text of their files, so that nothing is imported for them.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from muntin.model.settings import DECLARATIONS, Settings

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "papers.md"
COLUMNS = ["feature", "section", "where", "shown by"]
TEST = re.compile(r"`([\w/]+\.py)::(test_\w+)`")
SCRIPT = re.compile(r"`(golden/\w+\.cqt)`")
BENCHMARK = re.compile(r"\]\((results/[\w-]+\.md)\)")
FILE = re.compile(r"`([\w/]+\.py)`")
SETTING = re.compile(r"`(\w+) = '(\w+)'`")
PARTS = ("**In part.**", "**Not built.**")


class Feature(NamedTuple):
    """A row of the page."""

    paper: str
    name: str
    section: str
    where: str
    shown: str

    @property
    def tests(self) -> list[tuple[str, str]]:
        """The files and names of its tests."""
        return TEST.findall(self.shown)


def read_features() -> list[Feature]:
    """Return all rows of the page."""
    found = []
    for section in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        paper, *lines = section.splitlines()
        head, _, *rows = [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in lines
            if line.startswith("|")
        ]
        assert head == COLUMNS, paper
        found += [Feature(paper, *row) for row in rows]
    return found


FEATURES = read_features()


def name_of(feature: Feature) -> str:
    return f"{feature.paper} {feature.name[:50]}"


@pytest.mark.parametrize("feature", FEATURES, ids=name_of)
def test_every_name_on_the_page_exists(feature: Feature) -> None:
    for file, name in feature.tests:
        path = ROOT / "tests" / file
        assert path.exists(), file
        assert re.search(rf"^def {name}\(", path.read_text(encoding="utf-8"), re.MULTILINE), name
    for script in SCRIPT.findall(feature.shown):
        assert (ROOT / "tests" / script).exists(), script
    for page in BENCHMARK.findall(feature.shown):
        assert (ROOT / "docs" / page).exists(), page
    for file in FILE.findall(feature.where):
        assert (ROOT / "src" / "muntin" / file).exists() or (ROOT / file).exists(), file
    for setting, value in SETTING.findall(feature.where):
        assert setting in DECLARATIONS, setting
        Settings().having(setting, value)


@pytest.mark.parametrize("feature", FEATURES, ids=name_of)
def test_every_feature_is_shown_by_something_or_says_why_not(feature: Feature) -> None:
    evidence = [*feature.tests, *SCRIPT.findall(feature.shown), *BENCHMARK.findall(feature.shown)]
    assert evidence or PARTS[1] in feature.shown
    for part in PARTS:
        _, marked, reason = feature.shown.partition(part)
        assert not marked or re.match(r"[^`]{30,}", reason.strip()), "a sentence says why"


def test_the_table_at_the_top_has_the_counts_of_the_others() -> None:
    counts = {paper: Counter[str]() for paper in dict.fromkeys(row.paper for row in FEATURES)}
    for feature in FEATURES:
        state = next((part for part in PARTS if part in feature.shown), "built")
        counts[feature.paper][state] += 1
    rows = {
        paper: [count.total(), count["built"], *(count[part] for part in PARTS)]
        for paper, count in counts.items()
    }
    rows["all"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    table = "\n".join(f"| {paper} | {' | '.join(map(str, row))} |" for paper, row in rows.items())
    assert table in PAGE.read_text(encoding="utf-8"), f"the table should be\n{table}"


def test_the_papers_are_those_of_the_bibliography() -> None:
    bibliography = (ROOT / "docs" / "bibliography.md").read_text(encoding="utf-8")
    keys = re.findall(r"^\| (\[\w+\]) \|", bibliography, re.MULTILINE)
    assert list(dict.fromkeys(row.paper for row in FEATURES)) == keys
