"""The checks of a golden script: each says what is wrong, or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

import pyarrow as pa

from muntin.plan.query import Emit
from muntin.testing.cells import Cell, is_text, read_seconds, write_cell, write_seconds, write_table
from muntin.testing.compare import aligned, difference, text_table
from muntin.testing.golden import (
    EMPTY,
    Explain,
    Late,
    Out,
    ScriptAnswer,
    ScriptRow,
    ScriptState,
    ScriptStep,
)
from muntin.testing.session import Session


@dataclass
class Completion:
    """New lines for parts of a script, by first and last line (from 1, the last not included)."""

    edits: list[tuple[int, int, list[str]]] = field(default_factory=list)

    def apply(self, lines: Sequence[str]) -> str:
        """Return the script with all edits made."""
        result = list(lines)
        for start, end, new in sorted(self.edits, reverse=True):
            result[start - 1 : end - 1] = new
        return "\n".join(result) + "\n"


def check_out(
    session: Session, step: ScriptStep, action: Out, completion: Completion | None
) -> str:
    """Check the output of a query: in order for INSERTS, in any order per instant for CHANGES."""
    got = session.output(action.query)
    have = result_cells(got)
    want = [_result_row(row) for row in action.rows]
    query = session.query(action.query)
    inserted = query is None or (query.emit is Emit.INSERTS and query.is_join)
    ordered = session.driver.in_order and inserted
    written = step.last_line > step.line
    if written and ((want == have) if ordered else (_by_instant(want) == _by_instant(have))):
        return ""
    if completion is None:
        problem = (
            "the results differ" if written else "nothing is written below it, not even (empty)"
        )
        return f"out {action.query}: {problem}\n{_both(want, have)}"
    completion.edits.append((step.line + 1, step.last_line + 1, write_results(got)))
    return ""


def check_answer(session: Session, action: ScriptAnswer) -> str:
    """Check an answer: the script, the driver and the oracle must agree.

    For CHANGES the output must add up to it.
    """
    want = [list(row.cells) for row in action.rows]
    got = session.driver.answer(action.query)
    problems = []
    if got is not None and _sorted(want) != _sorted(write_table(got)):
        problems.append(
            f"answer {action.query}: the answer differs\n{_both(want, write_table(got))}"
        )
    truth = session.oracle_answer(action.query)
    if truth is not None:
        if _sorted(want) != _sorted(write_table(truth)):
            problems.append(f"answer {action.query}: the oracle says\n{text_table(truth)}")
        if got is not None and (problem := difference(truth, got)):
            problems.append(f"answer {action.query}: the engine differs from the oracle\n{problem}")
    if problem := session.against_oracle(action.query):
        problems.append(
            f"answer {action.query}: what was sent out differs from the oracle\n{problem}"
        )
    return "\n".join(problems)


def check_state(
    session: Session, step: ScriptStep, action: ScriptState, completion: Completion | None
) -> str:
    """Return the rows held per stream."""
    told = session.driver.state()
    if told is None:
        return ""
    held = {name.casefold(): count for name, count in told.items()}
    want = dict(action.rows)
    have = {name: held.get(name.casefold(), 0) for name in want}
    if want == have:
        return ""
    line = "state " + " ".join(f"{name}={count}" for name, count in have.items())
    if completion is None:
        return (
            "state differs\nexpected:\n  state "
            f"{' '.join(f'{name}={count}' for name, count in want.items())}\ngot:\n  {line}"
        )
    completion.edits.append((step.line, step.line + 1, [line]))
    return ""


def check_late(session: Session, action: Late) -> str:
    """Return the rows that came too late."""
    problem = difference(
        session.stream_rows(action.stream, action.rows), session.driver.late(action.stream)
    )
    return f"late {action.stream}: the rows differ\n{problem}" if problem else ""


def check_explain(session: Session, action: Explain) -> str:
    """Pieces of text that the explanation must contain."""
    text = session.driver.explain(action.query)
    missing = [piece for piece in action.pieces if text is not None and piece not in text]
    return (
        f"explain {action.query}: it does not contain {', '.join(map(repr, missing))}\ngot:\n{text}"
        if missing
        else ""
    )


def result_cells(results: pa.Table) -> list[list[Cell]]:
    """Results as text: sign, seconds, values."""
    instants = results.column("_ts").cast(pa.int64()).to_pylist()
    values = write_table(results.drop_columns(["_op", "_ts"]))
    signs = results.column("_op").to_pylist()
    return [
        [sign, write_seconds(instant), *row]
        for sign, instant, row in zip(signs, instants, values, strict=True)
    ]


def write_results(results: pa.Table) -> list[str]:
    """Results as the lines of an ``out`` block."""
    if not results.num_rows:
        return [EMPTY]
    quoted = [False, False, *(is_text(arrow) for arrow in results.schema.types[2:])]
    cells = [
        [write_cell(cell, quoted=text) for cell, text in zip(row, quoted, strict=True)]
        for row in result_cells(results)
    ]
    width = max(len(row[1]) for row in cells)
    return [f"{row[0]} {row[1].ljust(width)}  {' '.join(row[2:])}" for row in cells]


def _result_row(row: ScriptRow) -> list[Cell]:
    sign, instant, *values = row.cells
    return [sign, write_seconds(read_seconds(instant or "")), *values]


def _by_instant(rows: list[list[Cell]]) -> list[list[list[Cell]]]:
    return [_sorted(list(group)) for _, group in groupby(rows, key=lambda row: row[1])]


def _sorted(rows: list[list[Cell]]) -> list[list[Cell]]:
    return sorted(rows, key=lambda row: [(cell is None, cell or "") for cell in row])


def _both(want: list[list[Cell]], have: list[list[Cell]]) -> str:
    return f"expected:\n{_lines(want)}\ngot:\n{_lines(have)}"


def _lines(rows: list[list[Cell]]) -> str:
    width = max(map(len, rows), default=0)
    return (
        aligned(
            [
                [write_cell(cell, quoted=False) for cell in row] + [""] * (width - len(row))
                for row in rows
            ]
        )
        or f"  {EMPTY}"
    )
