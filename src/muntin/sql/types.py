"""SQL types as DuckDB understands them, turned into the Arrow types that DuckDB makes of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

import pyarrow as pa

from muntin.errors import InputError, SqlError
from muntin.sql.lexer import Tokens, is_number, is_text, tokenize, top_level, word
from muntin.sql.probe import DuckRefusalError, ask

RESERVED = ("_op", "_ts")
"""Names that results use for themselves."""

_HINT = "Types are DuckDB's, for example BIGINT, DOUBLE, VARCHAR, TIMESTAMP, DECIMAL(10, 2) or INTEGER[]"
_FOREIGN = re.compile(r"\b(?:BIT|BIGNUM|GEOMETRY|VARIANT|TIME WITH TIME ZONE)\b|\"NULL\"")
"""Types whose values change when they travel as Arrow: BIT arrives as BLOB, TIMETZ as TIME."""
_CONSTRAINTS = {"NOT", "NULL", "PRIMARY KEY", "PRIMARY", "UNIQUE", "DEFAULT", "CHECK", "REFERENCES", "COLLATE", "GENERATED", "AS"}


def arrow_type(sql_type: str) -> pa.DataType:
    """The Arrow type of a SQL type.

    Parameters
    ----------
    sql_type : str
        The name of the type as in a column definition of DuckDB, in any case.

    Raises
    ------
    InputError
        When there is no such type.

    Examples
    --------
    >>> arrow_type("decimal(10, 2)")
    Decimal128Type(decimal128(10, 2))
    """
    try:
        tokens = tokenize(sql_type)
    except SqlError as error:
        raise InputError(f"{sql_type!r} is not a type", hint=_HINT) from error
    if not _is_plain(tokens):
        raise InputError(f"{sql_type!r} is not a type", hint=_HINT)
    constraint = next((tokens[index] for index in top_level(tokens) if word(tokens[index]) in _CONSTRAINTS), None)
    if constraint is not None:
        fact = f"{constraint.text} in {sql_type!r} is not part of a type"
        raise InputError(fact, hint="Columns have a name and a type only; any column may hold NULL")
    try:
        return _ask_type(" ".join(tokens.source(token) for token in tokens))
    except DuckRefusalError as refusal:
        raise InputError(f"{sql_type!r} is not a type", hint=f"{refusal.advice} {_HINT}".strip()) from refusal


def build_schema(columns: Mapping[str, str]) -> pa.Schema:
    """The Arrow schema of columns given with their SQL types.

    Parameters
    ----------
    columns : Mapping[str, str]
        SQL types by column name.

    Raises
    ------
    InputError
        When there is no column, a name is taken or reserved, or a type is unknown.

    Examples
    --------
    >>> build_schema({"k": "bigint", "ts": "timestamp"}).names
    ['k', 'ts']
    """
    check_columns(columns)
    return pa.schema([pa.field(name, arrow_type(sql_type)) for name, sql_type in columns.items()])


def check_columns(names: Iterable[str]) -> None:
    """Refuse no columns at all, names given twice up to case, and names that results need."""
    seen: dict[str, str] = {}
    for name in names:
        if not name:
            raise InputError("a column has an empty name", hint="Give every column a name")
        if name.casefold() in RESERVED:
            raise InputError(f"a column cannot be called {name!r}", hint="Results use _op and _ts themselves; choose another name")
        if name.casefold() in seen:
            known = seen[name.casefold()]
            raise InputError(f"the columns {known!r} and {name!r} have the same name", hint="Names ignore case; rename one of them")
        seen[name.casefold()] = name
    if not seen:
        raise InputError("there are no columns", hint="Declare at least one")


def _is_plain(tokens: Tokens) -> bool:
    """Whether the text is made of words, numbers and balanced parentheses, so that it cannot reach out of a CAST."""
    depth = 0
    for token in tokens:
        depth += (token.text in {"(", "["}) - (token.text in {")", "]"})
        symbol = not (word(token) or is_number(token) or is_text(token) or token.token_type.name == "IDENTIFIER")
        if depth < 0 or (symbol and token.text not in {"(", ")", "[", "]", ","}) or (is_text(token) and depth == 0):
            return False
    return depth == 0 and len(tokens) > 0


@lru_cache(maxsize=1024)
def _ask_type(sql_type: str) -> pa.DataType:
    value = f"CAST(NULL AS {sql_type})"
    name = re.sub(r"'[^']*'|\"(?!NULL\")[^\"]*\"", "", ask(f"SELECT typeof({value}) AS x").column(0)[0].as_py())
    foreign = _FOREIGN.search(name)
    if foreign:
        raise InputError(f"a column cannot have type {foreign.group()}", hint=_HINT)
    return ask(f"SELECT {value} AS x LIMIT 0").schema.field(0).type
