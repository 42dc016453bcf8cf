"""Asking DuckDB.

The one connection that binding uses, made when first needed and shared by all threads.
"""

from __future__ import annotations

import atexit
import re
import threading
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from muntin.errors import FunctionError
from muntin.expressions.duck import Duck, DuckError, DuckFatalError
from muntin.expressions.validator import UnparsableError, check_expressions
from muntin.model.functions import without_keys

Value = TypeVar("Value")

_lock = threading.Lock()
_ducks: list[Duck] = []
atexit.register(_ducks.clear)  # DuckDB complains of connections that outlive it


class DuckRefusalError(Exception):
    """What DuckDB has against an expression, in its own words without the noise around them."""

    def __init__(self, error: Exception) -> None:
        text = error.fact if isinstance(error, FunctionError) else str(error)
        text = without_keys(text.split("\n\nLINE ")[0])
        text = re.sub(r"^(?:[A-Z]\w* )+Error: ", "", text)
        text = text.split("\n\tCandidate functions")[0].replace("_LITERAL", "")
        fact, _, advice = text.partition("\n")
        fact = re.sub(
            r"^Scalar Function with name (\S+) does not exist", r"there is no function \1", fact
        )
        if fact.startswith("Deprecated lambda arrow"):
            fact, advice = (
                "the arrow of a lambda is out of use",
                "Write lambda x: x + 1 instead of x -> x + 1",
            )
        if "You might need to add explicit type casts" in fact:
            fact, advice = (
                fact.split(". You might need")[0],
                "Check the types, or add a cast such as CAST(x AS DOUBLE)",
            )
        self.fact = fact.strip().rstrip(".!")
        self.advice = " ".join(advice.split()).rstrip(".!")
        super().__init__(self.fact)


def ask(sql: str, **tables: pa.Table) -> pa.Table:
    """Return the result of one SELECT over the given tables, or :class:`DuckRefusalError`."""
    return _use(lambda duck: duck.run(sql, **tables))


def check(texts: Sequence[str], columns: Collection[str]) -> list[Any]:
    """Return DuckDB's trees of expressions that are safe to run over those columns.

    Raises :class:`NotAllowedError` for what is not allowed and :class:`DuckRefusalError` for what
    DuckDB cannot parse.
    """
    return _use(lambda duck: check_expressions(duck, texts, columns))


def _use(work: Callable[[Duck], Value]) -> Value:
    with _lock:
        if not _ducks:
            _ducks.append(Duck())
        try:
            return work(_ducks[0])
        except DuckError as error:
            if isinstance(error, DuckFatalError) or "invalidated" in str(error):
                _ducks.clear()  # the next question gets a new connection
            raise DuckRefusalError(error) from error
        except (FunctionError, pa.ArrowException, NotImplementedError, UnparsableError) as error:
            raise DuckRefusalError(error) from error
