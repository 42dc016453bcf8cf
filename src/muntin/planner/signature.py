"""Signatures: what two queries must have in common to share one join, however they are written.

A signature has the sources of a query with the kinds of their windows, and the conditions that join
them. The order of sources and of conditions, the sides of a comparison, aliases and the case of
keywords do not count; ``A.k = B.k AND B.k = C.k`` is the same as ``A.k = C.k AND C.k = B.k``, since
equality of codes of one kind is transitive (:mod:`muntin.planner.classes`). Conditions over one
source are no part of it, nor are the lengths of windows.

Which source stands for which is clear when all streams differ. In a self-join it has to be found:
sources get colors by the conditions they take part in and by the colors of their neighbors
there, until nothing changes; where several have the same color one is singled out and the rest
follows. A mapping is taken only if the conditions are then the same, letter by letter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from typing import TypeAlias

from muntin.model.window import PartitionedWindow, RowsWindow, TimeWindow, Window
from muntin.plan.column_rename import pieces_of, renamed
from muntin.plan.expression import ColumnRef, Expression, Predicate, quote
from muntin.plan.join import CodeKind
from muntin.plan.nodes import Join
from muntin.planner.classes import equality_classes
from muntin.planner.codes import code_kind
from muntin.planner.steps import FLIPPED

Places: TypeAlias = tuple[int, ...]
"""For each source of a query its place in another one."""

_MOST_TRIED = 256
"""The most ways to map similar sources that are tried."""


@dataclass(frozen=True)
class Text:
    """An expression in pieces: plain text, and columns by (place of the source, name)."""

    pieces: tuple[str | tuple[int, str], ...]

    def show(self, names: Sequence[str]) -> str:
        """Return the text, sources called by these names."""
        return "".join(
            piece if isinstance(piece, str) else f"{names[piece[0]]}.{quote(piece[1])}"
            for piece in self.pieces
        )


@dataclass(frozen=True)
class Equal:
    """Expressions that must all be equal, with the kind of their codes."""

    members: frozenset[tuple[Text, CodeKind]]

    def show(self, names: Sequence[str]) -> str:
        """Return the condition, sources called by these names.

        The same for every way to write it.
        """
        return " = ".join(sorted(f"{text.show(names)}:{kind}" for text, kind in self.members))


@dataclass(frozen=True)
class Compared:
    """A comparison whose sides read several sources, or are not compared by codes, or for order."""

    operator: str
    left: Text
    right: Text

    def show(self, names: Sequence[str]) -> str:
        """Return the condition, sources called by these names.

        The same whichever side stands first.
        """
        left, right, operator = self.left.show(names), self.right.show(names), self.operator
        if operator in {">", ">="} or (FLIPPED[operator] == operator and right < left):
            left, right, operator = right, left, FLIPPED[operator]
        return f"{left} {operator} {right}"


@dataclass(frozen=True)
class Other:
    """A condition of any other form."""

    text: Text

    def show(self, names: Sequence[str]) -> str:
        """Return the condition, sources called by these names."""
        return self.text.show(names)


JoinCondition: TypeAlias = Equal | Compared | Other


@dataclass(frozen=True)
class Signature:
    """Sources as (relation, kind of window), and the conditions that join them."""

    sources: tuple[tuple[str, str], ...]
    conditions: frozenset[JoinCondition]

    @cached_property
    def key(self) -> str:
        """Return a value that queries with the same signature share.

        Different ones may agree in it, which :func:`find_places` then sees.
        """
        return _digest(*sorted(self.colors(())))

    def written(self, places: Places) -> frozenset[str]:
        """Return the conditions with each source called by its place."""
        names = [str(place) for place in places]
        return frozenset(condition.show(names) for condition in self.conditions)

    def colors(self, marked: Places) -> tuple[str, ...]:
        """Return a color for each source.

        Sources that conditions distinguish differ, and so do the marked ones.
        """
        marks = {place: str(number) for number, place in enumerate(marked)}
        colors = [
            _digest(*source, marks.get(place, "")) for place, source in enumerate(self.sources)
        ]
        while True:
            finer = [
                _digest(color, *sorted(self._seen_from(place, colors)))
                for place, color in enumerate(colors)
            ]
            if len(set(finer)) == len(set(colors)):
                return tuple(finer)
            colors = finer

    def _seen_from(self, place: int, colors: Sequence[str]) -> Iterator[str]:
        names = list(colors)
        names[place] = "this"
        return (condition.show(names) for condition in self.conditions)


def signature_of(join: Join) -> Signature:
    """Return the signature of a window join."""
    equalities: list[tuple[tuple[Text, CodeKind], tuple[Text, CodeKind]]] = []
    conditions: list[JoinCondition] = []
    for predicate in join.predicates:
        if is_selection(predicate):
            continue
        comparison = predicate.comparison
        if comparison is None:
            conditions.append(Other(text_of(predicate.expression)))
            continue
        left, right = text_of(comparison.left), text_of(comparison.right)
        kind = _equality_kind(predicate)
        if kind is None:
            conditions.append(Compared(comparison.operator, left, right))
        else:
            equalities.append(((left, kind), (right, kind)))
    numbers = {
        node: (number, 0)
        for number, node in enumerate(dict.fromkeys(node for pair in equalities for node in pair))
    }
    nodes = {number: node for node, number in numbers.items()}
    classes = equality_classes((numbers[left], numbers[right]) for left, right in equalities)
    conditions += [
        Equal(frozenset(nodes[number] for number in members)) for members in set(classes.values())
    ]
    names = [str(place) for place in range(len(join.sources))]
    different = {condition.show(names): condition for condition in conditions}
    return Signature(
        tuple((source.relation, window_kind(source.window)) for source in join.scans),
        frozenset(different.values()),
    )


def is_selection(predicate: Predicate) -> bool:
    """Return whether the condition reads one source at most, so that it is not part of the join."""
    return len(predicate.expression.sources) <= 1


def _equality_kind(predicate: Predicate) -> CodeKind | None:
    """Return the kind of codes on which an equality of two sources is decided.

    None for conditions of other forms.
    """
    comparison = predicate.comparison
    if (
        comparison is None
        or comparison.operator != "="
        or not len(comparison.left.sources) == len(comparison.right.sources) == 1
    ):
        return None
    return code_kind(comparison.left.type, comparison.right.type, "=")


def window_kind(window: Window) -> str:
    """Return the property that windows must have in common to share a store.

    Of partitioned windows everything, of the others all but their length.

    >>> window_kind(TimeWindow(5)), window_kind(RowsWindow(5))
    ('time', 'rows')
    """
    match window:
        case TimeWindow():
            return "time"
        case RowsWindow():
            return "rows"
        case PartitionedWindow():
            return str(window)
        case _:
            return "stored"


def text_of(expression: Expression) -> Text:
    """Return the expression in pieces.

    Even spaces, lower case but for texts and names in quotes, columns apart.
    """
    columns: dict[str, str | tuple[int, str]] = {
        quote(known.flat): (known.source, known.column) for known in expression.references
    }
    return Text(tuple(columns.get(token) or _plain(token) for token in pieces_of(expression.sql)))


def _plain(token: str) -> str:
    if token.isspace():
        return " "
    return token if any(mark in token for mark in "'\"$") else token.lower()


def moved(expression: Expression, places: Places) -> Expression:
    """Return the expression over other places: its source ``i`` is ``places[i]`` there."""
    return renamed(
        expression,
        {known: ColumnRef(places[known.source], known.column) for known in expression.references},
    )


def readable(expression: Expression, aliases: Sequence[str]) -> str:
    """Return the expression with columns as users write them."""
    names = {
        quote(known.flat): f"{aliases[known.source]}.{known.column}"
        for known in expression.references
    }
    return "".join(names.get(token, token) for token in pieces_of(expression.sql))


def find_places(mine: Signature, theirs: Signature) -> Places | None:
    """Return for each of my sources the place of the one of theirs that it corresponds to.

    None when the signatures differ.
    """
    same = tuple(range(len(mine.sources)))
    if mine.sources == theirs.sources and mine.written(same) == theirs.written(same):
        return same
    if len(mine.sources) != len(theirs.sources) or len(mine.conditions) != len(theirs.conditions):
        return None
    wanted = theirs.written(same)
    tried = islice(_candidates(mine, theirs, (), ()), _MOST_TRIED)
    return next((places for places in tried if mine.written(places) == wanted), None)


def _candidates(mine: Signature, theirs: Signature, own: Places, other: Places) -> Iterator[Places]:
    """Yield the ways to map the sources that agree in all colors.

    The sources in ``own`` are already mapped to those in ``other``.
    """
    left, right = mine.colors(own), theirs.colors(other)
    if sorted(left) != sorted(right):
        return
    place = next((place for place, color in enumerate(left) if left.count(color) > 1), None)
    if place is None:
        yield tuple(right.index(color) for color in left)
        return
    for candidate, color in enumerate(right):
        if color == left[place]:
            yield from _candidates(mine, theirs, (*own, place), (*other, candidate))


def _digest(*parts: str) -> str:
    return blake2b("\0".join(parts).encode(), digest_size=12).hexdigest()
