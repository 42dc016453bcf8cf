"""Values of settings that name sources of a query by alias: orders, indexes, buckets and trees.

Parsing needs no query, so a setting can be given to the engine. The planner resolves the aliases
against FROM, and refuses those it does not find there.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from muntin.model.settings.values import RefusedValueError

_MOST_BUCKETS = 2**31 - 1


@dataclass(frozen=True)
class GivenOrder:
    """The order in which sources are bound: for rows of ``origin``, or for all origins if None."""

    origin: str | None
    aliases: tuple[str, ...]


@dataclass(frozen=True)
class BucketCounts:
    """The number of buckets of the indexes of all sources, and those of single aliases."""

    everywhere: int | None
    by_alias: tuple[tuple[str, int], ...]

    def of(self, alias: str) -> int | None:
        """Return the number of buckets of a source; None where the setting gives none."""
        return dict(self.by_alias).get(alias.casefold(), self.everywhere)


class TreeChoice(StrEnum):
    """Whether a join may keep intermediate results in a tree of the planner's choice."""

    AUTO = "auto"
    OFF = "off"


@dataclass(frozen=True)
class GivenTree:
    """A tree as the user wrote it, such as ``((A, B), C)``."""

    text: str


def parse_aliases(text: str) -> frozenset[str]:
    """Return the aliases in ``A, C``, folded to one case."""
    return frozenset(alias.strip().casefold() for alias in text.split(",") if alias.strip())


def parse_tree(text: str) -> TreeChoice | GivenTree:
    """Return the value of ``auto``, ``off`` or a tree."""
    return TreeChoice(text) if text in set(TreeChoice) else GivenTree(text)


def parse_orders(text: str) -> tuple[GivenOrder, ...]:
    """Return the orders in ``A, B, C`` or ``A: B, C; B: C, A``.

    >>> parse_orders("A: B, C; B, C, A")[0]
    GivenOrder(origin='A', aliases=('B', 'C'))
    """
    found = []
    for part in filter(str.strip, text.split(";")):
        origin, colon, rest = part.rpartition(":")
        aliases = tuple(alias.strip() for alias in rest.split(","))
        found.append(GivenOrder(origin.strip() if colon else None, aliases))
    return tuple(found)


def parse_buckets(text: str) -> BucketCounts | None:
    """Return the numbers of buckets in a text; None where it has none.

    >>> parse_buckets("A = 5, B = 10").of("b")
    10
    """
    everywhere: int | None = None
    single: dict[str, int] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        before, equals, after = part.partition("=")
        alias, written = (before.strip(), after.strip()) if equals else ("", before.strip())
        nameless = bool(equals) and not alias
        if nameless or not written.isdecimal() or not 0 < int(written) <= _MOST_BUCKETS:
            raise RefusedValueError("Write a positive number, or 'A = 5, B = 100'")
        if equals:
            single[alias.casefold()] = int(written)
        else:
            everywhere = int(written)
    if everywhere is None and not single:
        return None
    return BucketCounts(everywhere, tuple(single.items()))
