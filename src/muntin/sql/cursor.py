"""Reading a run of tokens from left to right, with errors that say what was expected instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlglot import Token, TokenType

from muntin.errors import SqlError
from muntin.model.catalog import Options
from muntin.sql.lexer import Tokens, is_name, is_number, is_symbol, is_text, word


class Cursor:
    """A place in a run of tokens."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.index = 0

    def look(self, ahead: int = 0) -> Token | None:
        """Return the token at the cursor or some tokens on, if there is one."""
        index = self.index + ahead
        return self.tokens[index] if index < len(self.tokens) else None

    def sees(self, *words: str) -> bool:
        """Return whether the next tokens are these words."""
        seen = [self.look(ahead) for ahead in range(len(words))]
        return all(
            token is not None and word(token) == wanted
            for token, wanted in zip(seen, words, strict=True)
        )

    def match(self, *words: str) -> bool:
        """Step over these words if they come next."""
        found = self.sees(*words)
        self.index += len(words) if found else 0
        return found

    def match_symbol(self, symbol: str) -> bool:
        """Step over this symbol if it comes next."""
        token = self.look()
        found = token is not None and is_symbol(token, symbol)
        self.index += found
        return found

    def take(self, what: str, hint: str = "") -> Token:
        """Step over the next token, whatever it is.

        ``what`` names what is missing if there is none.
        """
        token = self.look()
        if token is None:
            raise self.unexpected(what, hint)
        self.index += 1
        return token

    def expect(self, what: str, hint: str = "") -> None:
        """Step over a word or symbol that must come next."""
        if not (self.match(*what.split()) or self.match_symbol(what)):
            raise self.unexpected(what, hint)

    def name(self, what: str) -> Token:
        """Step over a name."""
        token = self.look()
        if token is None or not is_name(token) or not token.text:
            hint = (
                "Put names that are keywords or hold unusual characters in double quotes, "
                '"like this"'
            )
            raise self.unexpected(what, hint)
        self.index += 1
        return token

    def number(self, what: str, hint: str = "") -> tuple[str, Token]:
        """Step over a number, which may have a sign; its text and the token to blame for it."""
        first = self.look()
        sign = "-" if self.match_symbol("-") else ""
        _ = sign or self.match_symbol("+")
        token = self.look()
        if first is None or token is None or not is_number(token):
            raise self.unexpected(what, hint)
        self.index += 1
        return sign + token.text, first

    def end(self, hint: str = "") -> None:
        """Refuse anything that is left."""
        if self.look() is not None:
            raise self.unexpected("", hint)

    def unexpected(self, what: str, hint: str = "") -> SqlError:
        """Return the error that ``what`` is not what comes next."""
        token = self.look()
        if token is None:
            last = self.tokens[-1].end + 1 if len(self.tokens) else self.tokens.stop
            return self.tokens.error(last, f"{what} is missing here", hint)
        wanted = f", expected {what}" if what else ""
        return self.tokens.error(token, f"unexpected {self.tokens.source(token)!r}{wanted}", hint)


def read_value(cursor: Cursor, *, bare: bool) -> tuple[str, Token]:
    """Return a string, number or true/false as text, and its token.

    Any word too when ``bare`` is set.
    """
    token = cursor.look()
    kinds = "a string, a number, true or false"
    if token is None:
        raise cursor.unexpected(kinds)
    if is_text(token):
        return cursor.take(kinds).text, token
    if word(token) in {"TRUE", "FALSE"}:
        return cursor.take(kinds).text.lower(), token
    if bare and word(token):
        return cursor.take(kinds).text, token
    if is_number(token) or is_symbol(token, "-") or is_symbol(token, "+"):
        return cursor.number(kinds)[0], token
    raise cursor.unexpected(kinds, "Put other values in quotes, 'like this'")


class Option(NamedTuple):
    """One of ``(name = value, ...)``, with the tokens at which its name and its value begin."""

    name: str
    value: str
    named: Token
    given: Token


def read_options(cursor: Cursor) -> list[Option]:
    """Return the options of ``(name = value, ...)``; names without quotes become lower case."""
    options: list[Option] = []
    hint = "Options are written WITH (name = 'value', ...)"
    cursor.expect("(", hint)
    while True:
        first = cursor.look()
        name = option_name(cursor, "the name of an option", hint)
        assert first is not None, "a name was read from it"
        cursor.expect("=", hint)
        value, token = read_value(cursor, bare=False)
        if any(name.casefold() == known.name.casefold() for known in options):
            raise cursor.tokens.error(first, f"the option {name} is given twice", "Give it once")
        options.append(Option(name, value, first, token))
        if not cursor.match_symbol(","):
            break
    cursor.expect(")", hint)
    return options


def option_name(cursor: Cursor, what: str, hint: str) -> str:
    """Return a name with or without dots, for options and settings.

    Lower case where it is not quoted.
    """
    parts = []
    while True:
        token = cursor.take(what, hint)
        if token.token_type == TokenType.IDENTIFIER or is_text(token):
            parts.append(token.text)
        elif word(token):
            parts.append(token.text.lower())
        else:
            cursor.index -= 1
            raise cursor.unexpected(what, hint)
        if not cursor.match_symbol("."):
            return ".".join(parts)


def plain_options(options: Sequence[Option]) -> Options:
    """Return the options without their tokens."""
    return tuple((option.name, option.value) for option in options)
