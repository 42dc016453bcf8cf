"""Taking conditions apart: at AND, at BETWEEN, and at a comparison.

Done on tokens, and only where DuckDB's precedence leaves no doubt; anything else stays whole. A
conjunct that stays whole costs speed, one that is cut wrongly would cost the result.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import TokenType

from muntin.sql.lexer import (
    Tokens,
    closing,
    is_number,
    is_symbol,
    is_text,
    split_commas,
    top_level,
    word,
)

_LOOSE = {"->", "=>", ":", ":=", "OR", "LAMBDA"}
"""What binds as loosely as AND or more so. DuckDB reads ``a -> b AND c`` as ``a -> (b AND c)``."""
_OPERATORS = {
    "=": "=",
    "==": "=",
    "<>": "<>",
    "!=": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_TIGHT = {
    "+", "-", "*", "/", "//", "%", "^", "**", "||", "&", "|", "->>", "::", ".", "(", "[", "{",
    ",", "@", "&&", "@>", "<@", "^@", "<->",
}  # fmt: skip
_WORDS = {
    "NOT", "IS", "ISNULL", "NOTNULL", "AND", "OR", "BETWEEN", "IN", "LIKE", "ILIKE", "GLOB",
    "ESCAPE", "LAMBDA", "SIMILAR TO",
}  # fmt: skip
_CASE = {"CASE", "WHEN", "THEN", "ELSE", "END"}
_QUANTIFIERS = {"ANY", "ALL", "SOME"}


@dataclass(frozen=True)
class Conjunct:
    """A condition that must hold.

    A comparison has its operator and both sides, and ``tokens`` to blame.
    """

    tokens: Tokens
    operator: str = ""
    sides: tuple[Tokens, Tokens] | None = None


def split_conjuncts(tokens: Tokens) -> list[Conjunct]:
    """Return the conditions that hold together iff the condition holds."""
    tokens = unwrap(tokens)
    top = top_level(tokens)
    marks = {index: _mark(tokens, index) for index in top}
    if _LOOSE & set(marks.values()):
        return [Conjunct(tokens)]
    cuts = _cuts(marks)
    if cuts:
        bounds = zip([0, *(cut + 1 for cut in cuts)], [*cuts, len(tokens)], strict=True)
        return [
            conjunct
            for start, end in bounds
            for conjunct in split_conjuncts(tokens.part(start, end))
        ]
    if any(word(token) == "COLLATE" for token in tokens):
        return [Conjunct(tokens)]  # the two sides alone would not know how to compare
    return _split_between(tokens, marks) or [_split_comparison(tokens, marks)]


def unwrap(tokens: Tokens) -> Tokens:
    """Return the tokens without the parentheses around all of them.

    The parentheses of a row of values stay.
    """
    while len(tokens) > 2 and is_symbol(tokens[0], "(") and closing(tokens, 0) == len(tokens) - 1:
        inner = tokens.part(1, len(tokens) - 1)
        if len(split_commas(inner)) > 1:
            break
        tokens = inner
    return tokens


def _mark(tokens: Tokens, index: int) -> str:
    """Return the word or symbol at a place; nothing for names and literals."""
    token = tokens[index]
    if token.token_type == TokenType.IDENTIFIER or is_text(token) or is_number(token):
        return ""
    if index > 0 and is_symbol(tokens[index - 1], "."):
        return ""
    return word(token) or token.text


def _cuts(marks: dict[int, str]) -> list[int]:
    """Return the places of AND that join conditions, not the bounds of a BETWEEN."""
    cuts = []
    bounds = 0
    for index, mark in marks.items():
        if mark == "BETWEEN":
            bounds += 1
        elif mark == "AND" and bounds:
            bounds -= 1
        elif mark == "AND":
            cuts.append(index)
    return cuts


def _split_between(tokens: Tokens, marks: dict[int, str]) -> list[Conjunct]:
    places = [index for index, mark in marks.items() if mark in {"BETWEEN", "AND"}]
    if len(places) != 2:
        return []
    between, middle = places
    value, low, high = (
        tokens.part(0, between),
        tokens.part(between + 1, middle),
        tokens.part(middle + 1),
    )
    rest = [mark for index, mark in marks.items() if index not in places]
    if not (_all_tight(rest) and len(value) and len(low) and len(high)) or "SYMMETRIC" in rest:
        return []
    return [Conjunct(tokens, ">=", (value, low)), Conjunct(tokens, "<=", (value, high))]


def _split_comparison(tokens: Tokens, marks: dict[int, str]) -> Conjunct:
    places = [index for index, mark in marks.items() if mark in _OPERATORS]
    rest = [mark for mark in marks.values() if mark not in _OPERATORS]
    if len(places) != 1 or not _all_tight(rest):
        return Conjunct(tokens)
    left, right = tokens.part(0, places[0]), tokens.part(places[0] + 1)
    if not len(left) or not len(right) or word(right[0]) in _QUANTIFIERS:
        return Conjunct(tokens)
    return Conjunct(tokens, _OPERATORS[marks[places[0]]], (left, right))


def is_tight(tokens: Tokens) -> bool:
    """Return whether an expression binds more tightly than a comparison."""
    return _all_tight([_mark(tokens, index) for index in top_level(tokens)])


def is_loose(tokens: Tokens, index: int) -> bool:
    """Return whether a token binds as loosely as a comparison, or separates expressions."""
    mark = _mark(tokens, index)
    return mark in {*_OPERATORS, *_LOOSE, *_WORDS, *_CASE, "SELECT", "DISTINCT"}


def _all_tight(marks: list[str]) -> bool:
    """Return whether all these bind more tightly than a comparison."""
    return all(
        mark in _TIGHT or (mark not in _WORDS and (mark[:1].isalpha() or mark[:1] in {"", "_"}))
        for mark in marks
    )
