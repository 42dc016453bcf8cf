"""Functions after a restart: a checkpoint has their declarations, users bring the code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from muntin.errors import InputError
from muntin.expressions.python_functions import PythonFunction, Vectorized
from muntin.model.functions import FunctionSignature
from muntin.runtime.frames import CheckpointError
from muntin.sql.python_functions import make_function


def restored_functions(
    stored: Iterable[FunctionSignature], given: Mapping[str, Vectorized]
) -> list[PythonFunction]:
    """Return the functions of a checkpoint with their code; raise if one is missing or another."""
    codes = {name.casefold(): code for name, code in given.items()}
    signatures = list(stored)
    missing = [each for each in signatures if each.name.casefold() not in codes]
    if missing:
        names = ", ".join(f"{each.name!r}: ..." for each in missing)
        raise CheckpointError(
            f"the checkpoint needs the code of {', '.join(map(str, missing))}",
            hint=f"Pass it: Engine.restore(folder, functions={{{names}}})",
        )
    unknown = codes.keys() - {each.name.casefold() for each in signatures}
    if unknown:
        raise InputError(
            f"the checkpoint has no function {', '.join(sorted(unknown))}",
            hint="Declare it after the engine is restored",
        )
    return [_made(each, codes[each.name.casefold()]) for each in signatures]


def _made(stored: FunctionSignature, code: Vectorized) -> PythonFunction:
    made = make_function(stored.name, code, dict(stored.parameters), stored.result)
    if made.signature.fingerprint != stored.fingerprint:
        raise CheckpointError(
            f"the function {stored.name} has other code than when the checkpoint was made, so what "
            "its queries hold would not follow from it",
            hint="Pass the same function; declare a changed one under another name after that",
        )
    return made
