"""Read JSON of any depth.

``json.loads`` recurses once per level, so a chain of 500 additions exceeds Python's stack although
DuckDB accepts it. This reader falls back to a loop for such texts.
"""

from __future__ import annotations

import json
import re
from typing import Any

_TOKEN = re.compile(r'\s*(?:([\[{]|[\]}]|[,:])|("(?:[^"\\]|\\.)*"|[^\s\[\]{},:"]+))')


def read_json(text: str) -> Any:
    """Return the value of a JSON text.

    >>> read_json('{"a": [1, true, "x"]}')
    {'a': [1, True, 'x']}
    """
    try:
        return json.loads(text)
    except RecursionError:
        return read_deep_json(text)


def read_deep_json(text: str) -> Any:
    """Parse valid JSON as ``json.loads`` does, without recursion."""
    root: list[Any] = []
    containers: list[Any] = [root]
    keys: list[str | None] = [None]
    """The key whose value comes next, per open container."""
    for match in _TOKEN.finditer(text):
        mark, atom = match.groups()
        if mark in {"]", "}"}:
            containers.pop()
            keys.pop()
        elif mark is None and isinstance(containers[-1], dict) and keys[-1] is None:
            keys[-1] = json.loads(atom)
        elif mark not in {",", ":"}:
            value: Any = json.loads(atom) if mark is None else [] if mark == "[" else {}
            _put(containers[-1], keys, value)
            if mark is not None:
                containers.append(value)
                keys.append(None)
    return root[0]


def _put(container: Any, keys: list[str | None], value: Any) -> None:
    """Add a value to a list, or to an object under the pending key."""
    if isinstance(container, list):
        container.append(value)
    else:
        container[keys[-1]] = value
        keys[-1] = None
