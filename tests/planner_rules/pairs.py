"""Files of planner rules: pairs of a query and the plan it must get.

A file is about one rule. Lines at the top that begin with ``#`` describe it; the declarations that
all its pairs share follow. Every pair begins with ``=== what it shows``, then a script with one
query, then ``=>``, then the plan as ``explain`` draws it, or ``error:`` and the message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

_TITLE = re.compile(r"^=== (.+)$", re.MULTILINE)
_ARROW = "\n=>\n"


@dataclass(frozen=True)
class Pair:
    """A script with one query, and its plan."""

    title: str
    script: str
    plan: str


@dataclass(frozen=True)
class RuleFile:
    """A rule in words, its declarations, its pairs."""

    about: str
    declarations: str
    pairs: tuple[Pair, ...]


def read_rules(text: str) -> RuleFile:
    """Return the file from its text."""
    head, *parts = _TITLE.split(text)
    lines = head.strip().splitlines()
    about = [line for line in lines if line.startswith("#")]
    declarations = [line for line in lines if not line.startswith("#")]
    pairs = []
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        script, arrow, plan = body.partition(_ARROW)
        assert arrow, f"the pair {title!r} has no line =>"
        pairs.append(Pair(title.strip(), script.strip(), plan.strip()))
    return RuleFile("\n".join(about), "\n".join(declarations).strip(), tuple(pairs))


def write_rules(rules: RuleFile) -> str:
    """Return the text of a file."""
    pairs = [f"=== {pair.title}\n{pair.script}{_ARROW}{pair.plan}".rstrip() for pair in rules.pairs]
    return "\n\n".join([f"{rules.about}\n{rules.declarations}", *pairs]) + "\n"


def write_plan(path: Path, title: str, plan: str) -> None:
    """Write the plan of one pair of a file."""
    rules = read_rules(path.read_text(encoding="utf-8"))
    pairs = tuple(replace(pair, plan=plan) if pair.title == title else pair for pair in rules.pairs)
    path.write_text(write_rules(replace(rules, pairs=pairs)), encoding="utf-8")
