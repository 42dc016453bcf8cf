"""Python functions that expressions call: what is declared of them.

Inside expressions a function goes by a key that no other function ever has, so queries of several
engines, or of one before and after a function was replaced, never call the wrong one.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, replace

_KEY = re.compile(r'"(\w+#[0-9a-f]{16})"')
_KEYED = re.compile(r'"?(\w+)#[0-9a-f]{16}\b"?')


@dataclass(frozen=True)
class FunctionSignature:
    """A declared function: its name, parameters as (name, SQL type), and the type of its result.

    ``fingerprint`` is equal for functions with equal code. ``key`` names it in expressions; it is
    new for each declaration.
    """

    name: str
    parameters: tuple[tuple[str, str], ...]
    result: str
    fingerprint: str
    key: str = ""

    def keyed(self) -> FunctionSignature:
        """Return the signature with a new key."""
        return replace(self, key=f"{self.name}#{secrets.token_hex(8)}")

    def __str__(self) -> str:
        parameters = ", ".join(f"{name} {kind}" for name, kind in self.parameters)
        return f"{self.name}({parameters}) -> {self.result}"


def function_keys(sql: str) -> frozenset[str]:
    """Return the keys of the functions that an expression calls.

    >>> sorted(function_keys('"twice#0123456789abcdef"("0.x") > 1'))
    ['twice#0123456789abcdef']
    """
    return frozenset(_KEY.findall(sql)) if "#" in sql else frozenset()


def without_keys(text: str) -> str:
    """Return a text for users, in which functions have their own names.

    >>> without_keys('"twice#0123456789abcdef"(A.x)')
    'twice(A.x)'
    """
    return _KEYED.sub(r"\1", text) if "#" in text else text
