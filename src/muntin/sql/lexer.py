"""Tokens that know where they stand.

The text is cut by sqlglot's DuckDB tokenizer. Positions are offsets into the whole script, so a
token found anywhere, in any part of a statement, can be blamed by line and column.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache

from sqlglot import Token, TokenType
from sqlglot.dialects.dialect import Dialect

from muntin.errors import InputError, Place, SqlError
from muntin.sql.invisible import find_invisible

DIALECT = Dialect.get_or_raise("duckdb")

_NAMES = {TokenType.VAR, TokenType.IDENTIFIER} | set(DIALECT.parser_class.ID_VAR_TOKENS)
_TEXTS = {kind for kind in TokenType if kind.name.endswith("STRING")}
_NOT_WORDS = {TokenType.IDENTIFIER, TokenType.NUMBER} | _TEXTS
_UNUSABLE = re.compile("[\0\ud800-\udfff]")
_CLOSED = re.compile(
    r"--[^\n]*|/\*.*?\*/|\{#.*?#\}"
    r"|[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$(\w*)\$.*?\$\1\$",
    re.DOTALL,
)
_OPENING = re.compile(r"/\*|\{#|'|\"|\$\w*\$")
_QUOTES = {"/*": "comment", "{#": "comment", '"': "quoted name"}
_OPENERS = {"(": ")", "[": "]", "{": "}", "CASE": "END"}
_CLOSERS = set(_OPENERS.values())


@dataclass(frozen=True)
class Tokens:
    """A run of tokens of one script.

    ``stop`` is the offset where it ends, ``query`` the query it belongs to.
    """

    text: str
    items: tuple[Token, ...]
    stop: int
    query: str | None = None

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Token]:
        return iter(self.items)

    def __getitem__(self, index: int) -> Token:
        return self.items[index]

    def part(self, start: int, end: int | None = None) -> Tokens:
        """Return the run from ``start`` up to ``end``."""
        stop = self.stop if end is None or end >= len(self) else self.items[end].start
        return replace(self, items=self.items[start:end], stop=stop)

    def source(self, token: Token) -> str:
        """Return the token as the user wrote it."""
        return self.text[token.start : token.end + 1]

    @property
    def original(self) -> str:
        """Return the text from the first token to the last, as the user wrote it."""
        return self.text[self.items[0].start : self.items[-1].end + 1] if self.items else ""

    @property
    def start(self) -> int:
        """Return the offset of the first token, or of the end when there is none."""
        return self.items[0].start if self.items else self.stop

    def place(self, offset: int) -> Place:
        """Line and column of an offset into the script."""
        starts = _line_starts(self.text)
        line = bisect_right(starts, offset)
        return Place(line, offset - starts[line - 1] + 1, self.query)

    def error(self, where: Token | int, fact: str, hint: str = "") -> SqlError:
        """Return the error to raise when ``where`` is to blame."""
        offset = where if isinstance(where, int) else where.start
        return SqlError(fact, place=self.place(offset), hint=hint)

    @contextmanager
    def blame(self, where: Token | int) -> Iterator[None]:
        """Give errors that know no place the place of ``where``."""
        try:
            yield
        except InputError as error:
            raise self.error(where, error.fact, error.hint) from error


@lru_cache(maxsize=4)
def _line_starts(text: str) -> list[int]:
    return [0, *(newline.end() for newline in re.finditer("\n", text))]


def tokenize(text: str, query: str | None = None) -> Tokens:
    """Cut a script into tokens; comments vanish.

    >>> [token.text for token in tokenize("SELECT x -- all of it")]
    ['SELECT', 'x']
    """
    if not isinstance(text, str):
        raise InputError(
            f"SQL must be text, not {type(text).__name__}", hint="Pass the statements as one str"
        )
    text = text.replace("\ufeff", " ", 1) if text.startswith("\ufeff") else text
    empty = Tokens(text, (), len(text), query)
    if odd := _UNUSABLE.search(text):
        raise empty.error(
            odd.start(),
            f"the character {odd.group()!r} cannot be part of a script",
            "Remove it; scripts are Unicode text",
        )
    try:
        items = tuple(DIALECT.tokenize(text))
    except (
        Exception
    ) as error:  # sqlglot's tokenizer meets broken text with exceptions of many kinds
        rest = _CLOSED.sub(lambda closed: " " * len(closed.group()), text)
        opening = _OPENING.search(rest)
        if opening is None:
            raise empty.error(
                0,
                "the text cannot be cut into words",
                "Look for stray quotes and unusual characters",
            ) from error
        what = _QUOTES.get(opening.group(), "string")
        raise empty.error(
            opening.start(), f"the {what} that begins here has no end", f"Close the {what}"
        ) from error
    if (offset := find_invisible(text, items)) is not None:
        name = unicodedata.name(text[offset], "control character").lower()
        fact = f"an invisible character (U+{ord(text[offset]):04X}, {name}) stands outside quotes"
        raise empty.error(offset, fact, "Remove it, or replace it by a plain space")
    return replace(empty, items=items)


def split_statements(tokens: Tokens) -> Iterator[Tokens]:
    """Yield the statements between semicolons, empty ones left out."""
    start = 0
    for index, token in enumerate(tokens):
        if token.token_type == TokenType.SEMICOLON:
            if index > start:
                yield tokens.part(start, index)
            start = index + 1
    if start < len(tokens):
        yield tokens.part(start)


def word(token: Token) -> str:
    """Return the unquoted word in upper case; ``GROUP BY`` is one.

    Empty for quoted names, literals and symbols.
    """
    if token.token_type in _NOT_WORDS:
        return ""
    return token.text.upper() if token.text[:1].isalpha() or token.text[:1] == "_" else ""


def is_text(token: Token) -> bool:
    """Return whether the token is a string literal of any kind."""
    return token.token_type in _TEXTS


def is_number(token: Token) -> bool:
    """Return whether the token is a number (without a sign)."""
    return token.token_type == TokenType.NUMBER


def is_name(token: Token) -> bool:
    """Return whether the token can name something.

    A quoted name, or a word that is not reserved.
    """
    return token.token_type == TokenType.IDENTIFIER or (
        token.token_type in _NAMES and bool(word(token))
    )


def is_symbol(token: Token, symbol: str) -> bool:
    """Return whether the token is that symbol, not a name or literal with the same text."""
    return token.text == symbol and token.token_type != TokenType.IDENTIFIER and not is_text(token)


def top_level(tokens: Tokens) -> list[int]:
    """Return the places of the tokens outside all parentheses, brackets, braces and CASE.

    Their openers count, their closers do not.
    """
    places = []
    depth = 0
    for index, token in enumerate(tokens):
        mark = "" if token.token_type in _NOT_WORDS else token.text.upper()
        named = index > 0 and tokens[index - 1].text == "."
        if mark in _CLOSERS and not named:
            depth = max(0, depth - 1)
            continue
        if depth == 0:
            places.append(index)
        if mark in _OPENERS and not named:
            depth += 1
    return places


def closing(tokens: Tokens, opening: int) -> int | None:
    """Return the place of the token that closes the parenthesis or bracket at ``opening``."""
    inner = tokens.part(opening + 1)
    depth = 1
    for index, token in enumerate(inner):
        if token.token_type in {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}:
            depth += 1
        elif token.token_type in {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}:
            depth -= 1
            if depth == 0:
                return opening + 1 + index
    return None


def split_commas(tokens: Tokens) -> list[Tokens]:
    """Return the parts between the commas that stand outside all parentheses."""
    cuts = [index for index in top_level(tokens) if tokens[index].token_type == TokenType.COMMA]
    return [
        tokens.part(start, end)
        for start, end in zip([0, *(cut + 1 for cut in cuts)], [*cuts, len(tokens)], strict=True)
    ]
