"""The Python functions of a run on their way to executors.

They travel as Spark's own functions do: pickled by the driver into the closure of its jobs, from
where a worker passes them on to its state server over a connection on which both have proved that
they hold the key. They are never written to the checkpoint, and nothing read from there is
unpickled.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muntin.errors import FunctionError
from muntin.expressions.python_functions import load, loaded
from muntin.model.functions import FunctionSignature


@dataclass(frozen=True)
class ShippedFunctions:
    """Functions as bytes, under the keys that the deployment of the run has; empty without any.

    ``paths`` is where their modules are looked for: a state server does not inherit the paths that
    Spark gives its workers.
    """

    keys: tuple[str, ...] = ()
    blob: bytes = b""
    paths: tuple[str, ...] = ()

    @staticmethod
    def of(signatures: Iterable[FunctionSignature]) -> ShippedFunctions:
        """Return the declared functions; they are loaded in this process."""
        from pyspark.cloudpickle import dumps  # noqa: PLC0415 (state servers do without it)

        keys = tuple(signature.key for signature in signatures)
        functions = [loaded(key) for key in keys]
        try:
            blob: bytes = dumps(functions)  # type: ignore[no-untyped-call]
            return ShippedFunctions(keys, blob) if keys else NO_FUNCTIONS
        except Exception as error:
            names = ", ".join(key.partition("#")[0] for key in keys)
            raise FunctionError(
                f"the functions {names} cannot be sent to executors: {error}",
                hint="They must not refer to locks, files or Spark's session",
            ) from error

    def load(self) -> None:
        """Load the functions in this process, unless they are."""
        if all(map(loaded, self.keys)):
            return
        _extend_path(self.paths)
        load(pickle.loads(self.blob))  # noqa: S301 (from the driver, see above)

    def from_here(self) -> ShippedFunctions:
        """Return them with the paths of this process."""
        return ShippedFunctions(self.keys, self.blob, tuple(sys.path)) if self.keys else self


NO_FUNCTIONS = ShippedFunctions()


def _extend_path(paths: Sequence[str]) -> None:
    sys.path.extend(path for path in paths if path not in sys.path)
