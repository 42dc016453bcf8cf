"""The stored tables of a dataflow by name: those that stay as they are, and those that change."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping

import pyarrow as pa

from muntin.runtime.keyed_table import KeyedTable


class StoredTables(MutableMapping[str, pa.Table]):
    """Maps names to rows; ``changing`` has the tables with a key."""

    def __init__(self) -> None:
        self._fixed: dict[str, pa.Table] = {}
        self.changing: dict[str, KeyedTable] = {}

    def __getitem__(self, name: str) -> pa.Table:
        changing = self.changing.get(name)
        return self._fixed[name] if changing is None else changing.content()

    def __setitem__(self, name: str, rows: pa.Table) -> None:
        self._fixed[name] = rows

    def __delitem__(self, name: str) -> None:
        if self.changing.pop(name, None) is None:
            del self._fixed[name]

    def __iter__(self) -> Iterator[str]:
        return iter([*self._fixed, *self.changing])

    def __len__(self) -> int:
        return len(self._fixed) + len(self.changing)
