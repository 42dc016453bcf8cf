"""Which queries a start replaces: they begin again, and their earlier output is deleted.

A query that the user names starts again whether it has changed or not. With ``everything``, each
query may delete the output that is in its way and starts again if it has changed; one that has not
changed is resumed with its state, so that asking for it at every start loses nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace

from muntin.errors import CatalogError, SettingError


@dataclass(frozen=True)
class Replacement:
    """The queries to replace.

    Parameters
    ----------
    everything : bool
        Whether every query may delete output that is in its way.
    names : tuple of str
        The queries that start again. Case does not matter.
    command : str
        The command line of this run, for the remedies in errors; empty in Python.
    done : bool
        Whether the named queries have started again: the next start of the engine resumes them.
    """

    everything: bool = False
    names: tuple[str, ...] = ()
    command: str = ""
    done: bool = False

    @classmethod
    def of(cls, given: object) -> Replacement:
        """Return what the user gave: True for all, one name or several.

        Raises
        ------
        SettingError
            When it is something else.
        """
        if isinstance(given, Replacement):
            return given
        if isinstance(given, bool):
            return cls(everything=given)
        names = [given] if isinstance(given, str) else given
        if isinstance(names, (list, tuple, set, frozenset)):
            texts = [name for name in names if isinstance(name, str)]
            if len(texts) == len(names):
                return cls(names=tuple(texts))
        raise SettingError(
            f"replace cannot be {given!r}",
            hint='Give the names of queries, such as replace=["q"], or True for all of them',
        )

    def check(self, declared: Iterable[str]) -> None:
        """Raise if a name is not that of a declared query; once done, queries may have gone."""
        known = list(declared)
        folded = {name.casefold() for name in known}
        for name in () if self.done else self.names:
            if name.casefold() not in folded:
                option = self.command and name.startswith("-")
                more = "; --replace-all replaces all that have changed" if option else ""
                raise CatalogError(
                    f"there is no query {name!r} to replace",
                    hint=f"There are {', '.join(known) or 'no queries'}{more}",
                )

    def restarts(self, name: str) -> bool:
        """Return whether a query starts again even if it has not changed."""
        return not self.done and self._names(name)

    def allows(self, name: str) -> bool:
        """Return whether a query may delete output that is in its way."""
        return self.everything or self._names(name)

    def _names(self, name: str) -> bool:
        return name.casefold() in {one.casefold() for one in self.names}

    def finished(self) -> Replacement:
        """Return what is left to do after the start that replaced the queries."""
        return replace(self, done=True)

    def remedy(self, queries: Iterable[str]) -> str:
        """Return what the user has to type in order to replace further queries."""
        more = list(dict.fromkeys(queries))
        if self.command:
            return " ".join([self.command, *(f"--replace {shlex.quote(name)}" for name in more)])
        names = ", ".join(f'"{name}"' for name in dict.fromkeys((*self.names, *more)))
        return f"SparkEngine(..., replace=[{names}])"

    def remedy_for_all(self) -> str:
        """Return what the user has to type in order to delete all output that is in the way."""
        return f"{self.command} --replace-all" if self.command else "SparkEngine(..., replace=True)"


NOTHING = Replacement()
