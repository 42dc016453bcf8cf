"""A plan as a tree of labeled facts, and its two printers.

Lines for people, nested objects for machines.

Whoever describes something builds :class:`Description` and never formats lines or objects; whoever
adds a fact adds one line there, and both printers show it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from muntin.model.functions import without_keys
from muntin.model.printable import printable

Value: TypeAlias = str | int | float | bool | Sequence[str] | None

_LIST = "[]"


@dataclass(frozen=True)
class Fact:
    """A value under its name for machines.

    ``text`` says it to people, empty where the label or another fact already does.
    """

    name: str
    value: Value
    text: str = ""


@dataclass(frozen=True)
class Description:
    """Something with facts and parts.

    ``key`` is its place in the object of its parent, with ``[]`` at the end where the parent has a
    list of them; ``lists`` names those lists, so that machines find them also when they are empty.
    A node without a label is for machines only.
    """

    key: str
    label: str
    facts: tuple[Fact, ...] = ()
    children: tuple[Description, ...] = ()
    lists: tuple[str, ...] = ()


def draw(node: Description) -> str:
    """Return the tree for people, a line for each node.

    >>> join = Description("join", "join", (Fact("method", "hash", "hash"),))
    >>> print(draw(Description("query", "query q", (), (join, Description("select", "select k")))))
    query q
    ├─ join: hash
    └─ select k
    """
    return "\n".join(_lines(node))


def _lines(node: Description) -> Iterator[str]:
    said = ", ".join(fact.text for fact in node.facts if fact.text)
    yield without_keys(printable(f"{node.label}: {said}" if said else node.label))
    shown = [child for child in node.children if child.label]
    for place, child in enumerate(shown, 1):
        branch, below = ("└─ ", "   ") if place == len(shown) else ("├─ ", "│  ")
        first, *rest = _lines(child)
        yield branch + first
        yield from (below + line for line in rest)


def to_dict(node: Description) -> dict[str, object]:
    """Return the tree for machines: the facts by name, and the parts by key.

    >>> filters = Description("filters[]", "filter a", (Fact("condition", "a"),))
    >>> to_dict(Description("query", "", (Fact("query", "q"),), (filters,), ("filters",)))
    {'query': 'q', 'filters': [{'condition': 'a'}]}
    """
    lists: dict[str, list[object]] = {name: [] for name in node.lists}
    found: dict[str, object] = {**{fact.name: _plain(fact.value) for fact in node.facts}, **lists}
    for child in node.children:
        if child.key.endswith(_LIST):
            lists[child.key.removesuffix(_LIST)].append(to_dict(child))
        else:
            assert child.key not in found, "parts that are not in a list have keys of their own"
            found[child.key] = to_dict(child)
    return found


def _plain(value: Value) -> Value:
    """Return a value with the names of functions as users know them."""
    if isinstance(value, str):
        return without_keys(value)
    return [without_keys(each) for each in value] if isinstance(value, list | tuple) else value
