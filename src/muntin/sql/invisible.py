"""Characters that nobody sees, which scripts may contain only in quotes and comments.

Parsers disagree about them: what one reads as part of a word is a space to another. And a reader of
the script cannot see what it says.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from sqlglot import Token, TokenType

_CATEGORIES = {"Cc", "Cf", "Zs", "Zl", "Zp"}
_UNUSUAL = re.compile(r"[^\x20-\x7e\t\n\r]")
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164"
    "\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters and marks without a shape: joiners, fillers and variation selectors."""
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/|\{#.*?#\}", re.DOTALL)
_QUOTED = {TokenType.IDENTIFIER} | {kind for kind in TokenType if kind.name.endswith("STRING")}


def find_invisible(text: str, tokens: Iterable[Token]) -> int | None:
    r"""Return the offset of the first invisible character outside quotes and comments.

    >>> find_invisible("a\u00a0b", [])
    1
    >>> find_invisible("Größe", [])
    """
    if not any(_is_invisible(mark) for mark in set(_UNUSUAL.findall(text))):
        return None
    return next(_offsets(text, tokens), None)


def _is_invisible(mark: str) -> bool:
    return unicodedata.category(mark) in _CATEGORIES or _BLANK.match(mark) is not None


def _offsets(text: str, tokens: Iterable[Token]) -> Iterator[int]:
    """Yield the offsets in words, and in the gaps between tokens but for comments."""
    start = 0
    for token in tokens:
        yield from _in_gap(text, start, token.start)
        if token.token_type not in _QUOTED:
            yield from _in(text[token.start : token.end + 1], token.start)
        start = token.end + 1
    yield from _in_gap(text, start, len(text))


def _in_gap(text: str, start: int, end: int) -> Iterator[int]:
    gap = _COMMENT.sub(lambda comment: " " * len(comment.group()), text[start:end])
    yield from _in(gap, start)


def _in(part: str, start: int) -> Iterator[int]:
    for match in _UNUSUAL.finditer(part):
        if _is_invisible(match.group()):
            yield start + match.start()
