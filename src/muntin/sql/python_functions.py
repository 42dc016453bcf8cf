"""Functions that users declare in Python: their declaration, and where a query calls them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sqlglot import TokenType

from muntin.errors import CatalogError, InputError
from muntin.expressions.allowed import ALLOWED, NAMING_AGGREGATES
from muntin.expressions.python_functions import PythonFunction, fingerprint_of
from muntin.expressions.validator import NotAllowedError
from muntin.model.arguments import check_name
from muntin.model.functions import FunctionSignature
from muntin.sql.functions import WITHOUT_PARENTHESES, refused_functions
from muntin.sql.lexer import Tokens, is_symbol, tokenize, word
from muntin.sql.probe import DuckRefusalError, ask, check
from muntin.sql.types import build_schema

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WINDOW = {
    "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead",
    "first_value", "last_value", "nth_value", "tumble", "hop", "session", "fill",
}  # fmt: skip
_CALL = "Write for example engine.function('twice', twice, {'x': 'DOUBLE'}, 'DOUBLE')"


def make_function(
    name: str, code: object, parameters: Mapping[str, str], result: str
) -> PythonFunction:
    """Return a function with a new key; raise if it cannot be declared like this."""
    check_name(name, "the name of a function")
    if not _NAME.fullmatch(name):
        raise InputError(
            f"a function cannot be called {name!r}",
            hint="Use letters, digits and underscores, and begin with a letter",
        )
    if _is_built_in(name):
        raise CatalogError(f"{name} is a function or a word of SQL", hint="Choose another name")
    if not callable(code):
        fact = f"the function {name} must be callable, not {type(code).__name__}"
        raise InputError(fact, hint=_CALL)
    given: object = parameters
    if isinstance(given, Mapping) and not given:
        fact = f"the function {name} has no parameters, so its value would be a constant"
        raise InputError(fact, hint="Write the value itself in the query")
    kinds = build_schema(parameters)
    returned = build_schema({"result": result}).field(0).type
    signature = FunctionSignature(
        name,
        tuple((parameter, _sql_type(kind)) for parameter, kind in parameters.items()),
        _sql_type(result),
        fingerprint_of(code),
    )
    return PythonFunction(signature.keyed(), code, tuple(kinds.types), returned)


def _sql_type(kind: str) -> str:
    """Return the name of a type as DuckDB writes it."""
    return str(ask(f"SELECT typeof(CAST(NULL AS {kind})) AS x").column(0)[0].as_py())


def _is_built_in(name: str) -> bool:
    """Return whether DuckDB, or a clause of queries, reads a call of that name differently."""
    folded = name.lower()
    known = {*ALLOWED, *NAMING_AGGREGATES, *refused_functions(), *_WINDOW}
    if folded in known or name.upper() in WITHOUT_PARENTHESES:
        return True
    (token,) = tokenize(name)
    if token.token_type is not TokenType.VAR:
        return True
    try:
        check([f"{name}(1)"], ())
    except NotAllowedError as error:
        return error.function.lower() != folded
    except DuckRefusalError:
        return True
    return True


def called_function(
    tokens: Tokens, index: int, functions: Mapping[str, FunctionSignature]
) -> FunctionSignature | None:
    """Return the function that is called at a token, if it is one of the given ones."""
    if not functions or index + 1 >= len(tokens) or not is_symbol(tokens[index + 1], "("):
        return None
    token = tokens[index]
    named = bool(word(token)) or token.token_type is TokenType.IDENTIFIER
    return functions.get(token.text.casefold()) if named else None


def functions_called(
    text: str, functions: Mapping[str, FunctionSignature]
) -> Sequence[FunctionSignature]:
    """Return the functions that a query calls, given its text."""
    tokens = tokenize(text)
    found = (called_function(tokens, index, functions) for index in range(len(tokens)))
    return list(dict.fromkeys(each for each in found if each is not None))
