"""Coverage-guided fuzzing of the lexer, the binder and the readers of rows, by hand.

Atheris is not a dependency of Muntin; install it into a separate virtual environment::

    python3.11 -m venv .atheris
    .atheris/bin/pip install atheris duckdb numba numpy pyarrow sqlglot pandas
    PYTHONPATH=src:. .atheris/bin/python -m tests.fuzz.atheris_targets binder CORPUS \\
        -max_total_time=3600 -max_len=400 -timeout=20 -rss_limit_mb=4096

Targets are ``lexer``, ``binder`` and ``rows``; CORPUS is a folder that the run fills and the next one
starts from. Any exception but a MuntinError is a finding; libFuzzer writes its input to ``crash-...``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["muntin.sql", "muntin.engine", "muntin.model", "sqlglot"]):
    from muntin.engine.input_rows import read_rows, read_times
    from muntin.errors import MuntinError
    from muntin.model.catalog import Catalog, Stream, Table
    from muntin.model.clock import parse_instant, parse_interval
    from muntin.sql.lexer import tokenize
    from muntin.sql.script import read_query, read_script
    from muntin.sql.types import build_schema

from tests.fuzz.cases import draw_case
from tests.fuzz.values import SMALL, junk

_KINDS = list(SMALL)
_COLUMNS = {f"c{place}": kind for place, kind in enumerate(_KINDS)} | {"ts": "TIMESTAMP"}


def _catalog() -> Catalog:
    catalog = Catalog()
    columns = {"k": "BIGINT", "v": "DOUBLE", "s": "VARCHAR", "o": "INTEGER[]", "ts": "TIMESTAMP"}
    for name in "ABC":
        catalog.add(Stream(name, build_schema(columns), "ts"))
    catalog.add(Table("T", build_schema({"k": "BIGINT", "s": "VARCHAR"})))
    return catalog


_CATALOG = _catalog()
_SCHEMA = build_schema(_COLUMNS)


def lexer(data: bytes) -> None:
    """Read tokens and intervals of any text."""
    try:
        text = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
    for read in (tokenize, parse_interval, parse_instant):
        _only_our_errors(read, text)


def binder(data: bytes) -> None:
    """Bind a query, and read a script."""
    text = data.decode("utf-8", "replace")
    _only_our_errors(read_query, text, "q", _CATALOG)
    _only_our_errors(lambda: list(read_script(text, _catalog())))


def rows(data: bytes) -> None:
    """Read rows whose cells are drawn from the data: of the column's type, of another, or of none."""
    provider = atheris.FuzzedDataProvider(data)
    found = []
    for _ in range(provider.ConsumeIntInRange(1, 3)):
        cells = [_cell(provider, kind) for kind in _KINDS]
        cells.append(provider.ConsumeInt(9) if provider.ConsumeBool() else _any(provider))
        if provider.ConsumeProbability() < 0.05:
            cells = cells[: provider.ConsumeIntInRange(0, len(cells))]
        found.append(
            dict(zip(_COLUMNS, cells, strict=False)) if provider.ConsumeBool() else tuple(cells)
        )

    def read() -> None:
        read_times(read_rows(found, _SCHEMA, "stream A"), "ts", "stream A")

    _only_our_errors(read)


def _cell(provider: atheris.FuzzedDataProvider, kind: str) -> object:
    choice = provider.ConsumeIntInRange(0, 15)
    if choice < 12:
        values = SMALL[kind]
        return values[choice % len(values)]
    return None if choice == 12 else _any(provider)


def _any(provider: atheris.FuzzedDataProvider) -> object:
    import random  # noqa: PLC0415

    match provider.ConsumeIntInRange(0, 6):
        case 0:
            return provider.ConsumeInt(12)
        case 1:
            return provider.ConsumeFloat()
        case 2:
            return provider.ConsumeUnicode(20)
        case 3:
            return provider.ConsumeBytes(20)
        case 4:
            return [_any(provider) for _ in range(provider.ConsumeIntInRange(0, 3))]
        case 5:
            return None
        case _:
            return junk(random.Random(provider.ConsumeInt(2)))


def _only_our_errors(call: Callable[..., object], *arguments: object) -> None:
    try:
        call(*arguments)
    except MuntinError as error:
        str(error)


def _fill(corpus: Path) -> None:
    """Begin with valid queries, if the folder is empty."""
    if any(corpus.iterdir()):
        return
    for seed in range(200):
        for number, step in enumerate(draw_case(seed, length=0).steps):
            if step[0] == "query":
                (corpus / f"{seed}-{number}").write_text(step[2], encoding="utf-8")


def main() -> None:
    """Run a target with libFuzzer's options."""
    target = {"lexer": lexer, "binder": binder, "rows": rows}[sys.argv.pop(1)]
    given = [Path(argument) for argument in sys.argv[1:] if not argument.startswith("-")]
    if given and not given[0].is_file():  # a file is an input to run again
        given[0].mkdir(parents=True, exist_ok=True)
        if target is not rows:
            _fill(given[0])
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
