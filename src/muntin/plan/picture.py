"""A plan as an SVG picture: rows flow from the streams on the left to the query on the right.

Parts that rows pass (sources, joins, operators, queries) are boxes; everything else that is known
of such a part is a line in its box. Colors follow those of the page around the picture.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from muntin.model.functions import without_keys
from muntin.model.printable import printable
from muntin.plan.description import Description

_COLUMNS = 38
_CHARACTER, _LINE, _PADDING = 6.7, 16.0, 8.0
_GAP_ACROSS, _GAP_DOWN = 44.0, 14.0
_WIDTH = _COLUMNS * _CHARACTER + 2 * _PADDING
_STYLE = (
    "font:11px ui-monospace,monospace;fill:currentColor;max-width:100%;height:auto;display:block"
)
_BOXES = ("operators[]", "sources[]", "queries[]", "joins[]")


@dataclass(frozen=True)
class _Box:
    """A part that rows pass, with the parts that it reads."""

    lines: tuple[str, ...]
    inputs: tuple[_Box, ...]

    @property
    def height(self) -> float:
        return len(self.lines) * _LINE + 2 * _PADDING

    @property
    def depth(self) -> int:
        return 1 + max((box.depth for box in self.inputs), default=-1)


@dataclass(frozen=True)
class _Placed:
    """A box at its place, with the places of what it reads."""

    box: _Box
    left: float
    top: float
    inputs: tuple[_Placed, ...]

    @property
    def middle(self) -> float:
        return self.top + self.box.height / 2


def picture(node: Description) -> str:
    """Return a plan as an SVG element.

    >>> picture(Description("query", "query q")).startswith("<svg ")
    True
    """
    root = _box(node)
    depth = root.depth
    placed, bottom = _place(root, depth, 1.0)
    width = (depth + 1) * _WIDTH + depth * _GAP_ACROSS + 2
    drawn, title = "".join(_draw(placed)), escape(_shown(node.label))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:g} {bottom:g}" '
        f'width="{width:g}" style="{_STYLE}"><title>{title}</title>{drawn}</svg>'
    )


def _box(node: Description) -> _Box:
    """Return the box of a part, with a line for each fact that is not a part itself."""
    inputs = tuple(_box(child) for child in node.children if child.key in _BOXES)
    lines = [part for text in _texts(node) for part in textwrap.wrap(_shown(text), _COLUMNS)]
    return _Box(tuple(lines), inputs)


def _texts(node: Description) -> Iterator[str]:
    """Return the label of a part, its facts, and what is known of what is no box below it."""
    yield node.label
    yield from filter(None, (fact.text for fact in node.facts))
    yield from _notes(node)


def _notes(node: Description) -> Iterator[str]:
    for child in node.children:
        if child.label and child.key not in _BOXES:
            said = ", ".join(fact.text for fact in child.facts if fact.text)
            yield f"{child.label}: {said}" if said else child.label
            yield from _notes(child)


def _shown(text: str) -> str:
    return without_keys(printable(text))


def _place(box: _Box, column: int, top: float) -> tuple[_Placed, float]:
    """Return a box right of what it reads and level with it, and where the next one may begin."""
    inputs, below = [], top
    for each in box.inputs:
        one, below = _place(each, column - 1, below)
        inputs.append(one)
    first, last = (inputs[0].middle, inputs[-1].middle) if inputs else (top, top)
    own = max(top, (first + last) / 2 - box.height / 2) if inputs else top
    left = 1 + column * (_WIDTH + _GAP_ACROSS)
    return _Placed(box, left, own, tuple(inputs)), max(below, own + box.height + _GAP_DOWN)


def _draw(placed: _Placed) -> Iterator[str]:
    box = placed.box
    for each in placed.inputs:
        yield from _draw(each)
        right, bend = each.left + _WIDTH, (each.left + _WIDTH + placed.left) / 2
        yield (
            f'<path d="M{right:g} {each.middle:g}C{bend:g} {each.middle:g} {bend:g} '
            f'{placed.middle:g} {placed.left:g} {placed.middle:g}" fill="none" '
            'stroke="currentColor" stroke-opacity=".5"/>'
        )
    yield (
        f'<rect x="{placed.left:g}" y="{placed.top:g}" width="{_WIDTH:g}" height="{box.height:g}" '
        f'rx="4" fill="currentColor" fill-opacity="{0.04 if box.inputs else 0.12}" '
        'stroke="currentColor" stroke-opacity=".4"/>'
    )
    for number, line in enumerate(box.lines, 1):
        weight = ' font-weight="bold"' if number == 1 else ""
        yield (
            f'<text x="{placed.left + _PADDING:g}" '
            f'y="{placed.top + _PADDING + number * _LINE - 4:g}"{weight}>{escape(line)}</text>'
        )
