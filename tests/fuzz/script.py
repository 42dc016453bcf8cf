"""A case as text: one step per line, as Python literals that :func:`read_script` takes back."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, TypeAlias

Step: TypeAlias = tuple[Any, ...]
"""A word and its arguments, see :class:`tests.fuzz.runner.Run`."""

_NAMES = {"datetime": dt, "Decimal": Decimal, "nan": math.nan, "inf": math.inf, "range": range}


def write_script(steps: Sequence[Step]) -> str:
    """Return the steps as text."""
    return "".join(f"{step!r}\n" for step in steps)


def read_script(text: str) -> list[Step]:
    """Return the steps of a text of :func:`write_script`; skip blank lines and comments."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [eval(line, {"__builtins__": {}}, _NAMES) for line in lines]
