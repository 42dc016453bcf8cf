"""SQL types as DuckDB understands them, turned into the Arrow types that DuckDB makes of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

import pyarrow as pa

from muntin.errors import InputError, SqlError
from muntin.expressions.validator import NotAllowedError
from muntin.model.arguments import check_text
from muntin.sql.lexer import Tokens, is_number, is_text, tokenize, top_level, word
from muntin.sql.probe import DuckRefusalError, ask, check

RESERVED = ("_op", "_ts")
"""Names that results use for themselves."""

_HINT = (
    "Types are DuckDB's, for example BIGINT, DOUBLE, VARCHAR, TIMESTAMP, "
    "DECIMAL(10, 2) or INTEGER[]"
)
UNSUPPORTED_HINT = "Use a STRUCT with one field per case, or cast to VARCHAR or a number"
_FOREIGN = re.compile(r"\b(?:BIT|GEOMETRY|VARIANT|TIME WITH TIME ZONE)\b|\"NULL\"")
"""Types whose values change when they travel as Arrow: BIT arrives as BLOB, TIMETZ as TIME."""
_CONSTRAINTS = {"NOT", "NULL", "PRIMARY KEY", "PRIMARY", "UNIQUE", "DEFAULT", "CHECK"}
_CONSTRAINTS |= {"REFERENCES", "COLLATE", "GENERATED", "AS"}


def arrow_type(sql_type: str) -> pa.DataType:
    """Return the Arrow type of a SQL type, named as in a column definition of DuckDB, in any case.

    >>> arrow_type("decimal(10, 2)")
    Decimal128Type(decimal128(10, 2))
    """
    check_text(sql_type, "a type", _HINT)
    kind = _read_type(sql_type)
    if (name := unsupported_type(kind)) is not None:
        raise InputError(f"columns of type {name} are not supported", hint=UNSUPPORTED_HINT)
    return kind


def unsupported_type(kind: pa.DataType) -> str | None:
    """Return the SQL name of a type, or of a type inside it, whose values cannot be kept.

    None if there is none.

    >>> unsupported_type(pa.list_(pa.sparse_union([pa.field("a", pa.int64())])))
    'UNION'
    """
    if pa.types.is_union(kind):
        return "UNION"
    if isinstance(kind, pa.OpaqueType):
        return str(kind.type_name).upper()
    fields = (kind.field(place) for place in range(kind.num_fields))
    return next(
        (name for field in fields if (name := unsupported_type(field.type)) is not None), None
    )


@lru_cache(maxsize=1024)
def _read_type(sql_type: str) -> pa.DataType:
    try:
        tokens = tokenize(sql_type)
    except SqlError as error:
        raise InputError(f"{sql_type!r} is not a type", hint=_HINT) from error
    if not _is_plain(tokens):
        raise InputError(f"{sql_type!r} is not a type", hint=_HINT)
    constraint = next(
        (tokens[index] for index in top_level(tokens) if word(tokens[index]) in _CONSTRAINTS), None
    )
    if constraint is not None:
        fact = f"{constraint.text} in {sql_type!r} is not part of a type"
        raise InputError(fact, hint="Columns have a name and a type only; any column may hold NULL")
    try:
        return _ask_type(" ".join(tokens.source(token) for token in tokens))
    except DuckRefusalError as refusal:
        raise InputError(
            f"{sql_type!r} is not a type", hint=f"{refusal.advice} {_HINT}".strip()
        ) from refusal


def build_schema(columns: Mapping[str, str]) -> pa.Schema:
    """Return the Arrow schema of columns given with their SQL types.

    >>> build_schema({"k": "bigint", "ts": "timestamp"}).names
    ['k', 'ts']
    """
    given: object = columns
    if not isinstance(given, Mapping):
        fact = f"columns must be a mapping from names to types, not {type(given).__name__}"
        raise InputError(fact, hint='Write for example {"k": "BIGINT", "ts": "TIMESTAMP"}')
    check_columns(columns)
    return pa.schema([pa.field(name, arrow_type(sql_type)) for name, sql_type in columns.items()])


def check_columns(names: Iterable[str]) -> None:
    """Refuse no columns at all, names given twice up to case, and names that results need."""
    seen: dict[str, str] = {}
    for name in names:
        add_column(name, seen)
    if not seen:
        raise InputError("there are no columns", hint="Declare at least one")


def add_column(name: str, seen: dict[str, str]) -> None:
    """Refuse a name that is taken or reserved.

    ``seen`` holds the names so far, by their folded form.
    """
    check_text(name, "the name of a column", "Give every column a name")
    if not name:
        raise InputError("a column has an empty name", hint="Give every column a name")
    folded = name.casefold()
    if folded in RESERVED:
        raise InputError(
            f"a column cannot be called {name!r}",
            hint="Results use _op and _ts themselves; choose another name",
        )
    if folded in seen:
        fact = f"the columns {seen[folded]!r} and {name!r} have the same name"
        raise InputError(fact, hint="Names ignore case; rename one of them")
    seen[folded] = name


def _is_plain(tokens: Tokens) -> bool:
    """Return whether the text is only words, numbers and balanced parentheses.

    Then it cannot reach out of a CAST.
    """
    depth = 0
    for token in tokens:
        depth += (token.text in {"(", "["}) - (token.text in {")", "]"})
        symbol = not (
            word(token)
            or is_number(token)
            or is_text(token)
            or token.token_type.name == "IDENTIFIER"
        )
        if (
            depth < 0
            or (symbol and token.text not in {"(", ")", "[", "]", ","})
            or (is_text(token) and depth == 0)
        ):
            return False
    return depth == 0 and len(tokens) > 0


def _ask_type(sql_type: str) -> pa.DataType:
    text = f"CAST(NULL AS {sql_type})"
    try:
        (tree,) = check([text], ())
    except NotAllowedError as error:
        raise InputError(f"{sql_type!r} is not a type", hint=_HINT) from error
    if tree["class"] != "CAST" or tree["child"]["class"] != "CONSTANT":
        raise InputError(f"{sql_type!r} is not a type", hint=_HINT)
    name = re.sub(
        r"'[^']*'|\"(?!NULL\")[^\"]*\"", "", ask(f"SELECT typeof({text}) AS x").column(0)[0].as_py()
    )
    foreign = _FOREIGN.search(name)
    if foreign:
        raise InputError(f"a column cannot have type {foreign.group()}", hint=_HINT)
    return ask(f"SELECT {text} AS x LIMIT 0").schema.field(0).type
