"""Hypothesis strategies for queries above joins.

DISTINCT, GROUP BY with aggregates, set operators, sub-selects in FROM, nested.

Beside :mod:`muntin.testing.strategies`, whose streams, tables and rows these queries are over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from muntin.testing.case import Case, StoredTable
from muntin.testing.golden import StreamDeclaration
from muntin.testing.strategies import Shape, cases

_NUMBERS = ("INTEGER", "BIGINT", "DOUBLE")
_WHOLE = (
    "COUNT(*)",
    "COUNT({x})",
    "SUM({x})",
    "AVG({x})",
    "MIN({x})",
    "MAX({x})",
    "COUNT(DISTINCT {x})",
    "MEDIAN({x})",
)
_MORE = (
    "QUANTILE_DISC({x}, 0.3)",
    "QUANTILE_CONT({x}, 0.75)",
    "SUM({x}) FILTER (WHERE {y} > 1)",
    "SUM({x} + {y})",
    "MAX({x}) - MIN({x})",
    "BOOL_AND({x} > {y})",
    "BOOL_OR({x} > 1)",
)
_ONCE = (
    "SUM(DISTINCT {x})",
    "AVG(DISTINCT {x})",
    "MEDIAN(DISTINCT {x})",
    "COUNT(DISTINCT {x}) FILTER (WHERE {y} > 1)",
)
_WITHIN = (
    "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY {x})",
    "PERCENTILE_DISC(0.4) WITHIN GROUP (ORDER BY {x} DESC)",
)
_BY_TIME = (
    "FIRST({x})",
    "LAST({x})",
    "LAST({x} + {y}) FILTER (WHERE {y} > 1)",
    "LAST({x}) - FIRST({x})",
    "ANY_VALUE({x})",
    "len(LIST({x}))",
    "LIST({x})[2]",
    "length(STRING_AGG({x}, '; '))",
    "STRING_AGG({x}, '+') FILTER (WHERE {y} > 1) = '1+1'",
)
_DEFINED_HERE = ("APPROX_COUNT_DISTINCT({x})", "MODE({x})", "MODE({x}) FILTER (WHERE {y} > 1)")
"""Aggregates whose values in DuckDB are estimates, or depend on the order of its scan."""
_BY_KEY = (
    "ARG_MAX({x}, {y})",
    "ARG_MIN({y}, {x})",
    "ARG_MAX({x}, {y} % 2) FILTER (WHERE {y} <> 2)",
    "ARG_MIN({x}, CAST({y} AS VARCHAR))",
)
_SPREAD = (
    "STDDEV_SAMP({x})",
    "STDDEV_POP({x})",
    "VAR_SAMP({x})",
    "VAR_POP({x})",
    "COVAR_POP({x}, {y})",
    "COVAR_SAMP({x}, {y}) FILTER (WHERE {y} <> 2)",
    "CORR({x}, {y})",
)
_OVER = (
    "COUNT(*)",
    "COUNT({x})",
    "SUM({x})",
    "MIN({x})",
    "MAX({x})",
    "LAST_VALUE({x})",
    "NTH_VALUE({x}, 2)",
    "LAG({x})",
    "LAG({x}, 2, 7)",
)
_FRAMES = (
    "",
    " ROWS 1 PRECEDING",
    " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
)
_SETS = ("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL", "MINUS")


@dataclass(frozen=True)
class PipelineShape:
    """What pipelines may look like: how deeply sub-selects are nested.

    Whether there are spreads, what depends on the order of rows (FIRST, LAST, ORDER BY with
    LIMIT, window functions), several windows.
    """

    depth: int = 2
    spreads: bool = False
    by_time: bool = True
    windows: bool = True
    minus: bool = True


@dataclass(frozen=True)
class _Entry:
    """An entry of FROM.

    Its text, its alias, and its columns of numbers and of texts, with the alias in front.
    """

    text: str
    alias: str
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    stored: bool = False
    select: bool = False


@dataclass(frozen=True)
class _Drawn:
    """What there is to draw from, and what may be drawn."""

    streams: tuple[StreamDeclaration, ...]
    tables: tuple[StoredTable, ...]
    shape: PipelineShape


@st.composite
def pipeline_cases(
    draw: st.DrawFn, shape: Shape | None = None, pipelines: PipelineShape | None = None
) -> Case:
    """Draw cases with a query above joins.

    Parameters
    ----------
    draw : DrawFn
        Given by Hypothesis.
    shape : Shape, optional
        Bounds of streams, rows and clauses.
    pipelines : PipelineShape, optional
        Bounds of the query.
    """
    shape = shape or Shape(events=16)
    case = draw(cases(shape))
    drawn = _Drawn(case.streams, case.tables, pipelines or PipelineShape())
    body, _ = draw(_selects(drawn, drawn.shape.depth))
    window = draw(
        st.sampled_from(
            [f"{draw(st.integers(1, 8))} SECONDS", f"{draw(st.integers(1, 4))} ROWS"]
            if drawn.shape.windows
            else ["5 SECONDS"]
        )
    )
    every = draw(
        st.sampled_from(
            ["", "", "", " EVERY 1 SECOND", " EVERY 3 SECONDS"] if shape.every else [""]
        )
    )
    emits = ["", "", "", " EMIT CHANGES", " EMIT INSERTS", *([" EMIT SNAPSHOT"] if every else [])]
    if " ASOF " in body:  # not all of these can emit inserts
        emits = [" EMIT CHANGES", *([" EMIT SNAPSHOT"] if every else [])]
    return replace(case, query=f"{body} WINDOW {window}{every}{draw(st.sampled_from(emits))}")


@st.composite
def _selects(
    draw: st.DrawFn, drawn: _Drawn, depth: int, columns: int | None = None
) -> tuple[str, int]:
    """Draw selects with set operators between them, and their number of numeric columns.

    Texts have none here.
    """
    columns = columns or draw(st.integers(1, 2))
    if depth and draw(st.integers(0, 2)) == 0:
        left, _ = draw(_selects(drawn, depth - 1, columns))
        right, _ = draw(_selects(drawn, depth - 1, columns))
        operator = draw(st.sampled_from(_SETS if drawn.shape.minus else _SETS[:-1]))
        left, right = (
            f"({part})" if any(name in part for name in (*_SETS, "LIMIT")) else part
            for part in (left, right)
        )
        return f"{left} {operator} {right}", columns
    return draw(_select(drawn, depth, columns)), columns


@st.composite
def _select(draw: st.DrawFn, drawn: _Drawn, depth: int, columns: int) -> str:
    """Draw one select with numeric columns, called c0, c1, ..."""
    entries = [
        draw(_entry(drawn, depth, alias))
        for alias in "xyz"[: draw(st.sampled_from([1, 1, 1, 2, 2, 3]))]
    ]
    if all(entry.stored for entry in entries):
        entries[0] = draw(_entry(drawn, 0, "x", streams=True))
    numbers = [number for entry in entries for number in entry.numbers]
    number = st.sampled_from(numbers)
    conditions = (
        [f"{draw(number)} {draw(st.sampled_from(['>', '<=', '<>']))} {draw(st.integers(1, 3))}"]
        if draw(st.booleans())
        else []
    )
    for place in range(1, len(entries)):
        other = entries[draw(st.integers(0, place - 1))]
        left = draw(st.sampled_from(other.numbers))
        right = draw(st.sampled_from(entries[place].numbers))
        conditions += [f"{left} = {right}"] if draw(st.integers(0, 4)) else []
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    texts_of_entries = [entry.text for entry in entries]
    if len(entries) > 1 and not (entries[-2].stored or entries[-2].select):
        texts_of_entries[-2:] = [draw(_joined(*entries[-2:]))]
    source = f"FROM {', '.join(texts_of_entries)}{where}"
    kind = draw(st.sampled_from(["plain", "distinct", "group", "group", "global"]))
    if kind in {"plain", "distinct"}:
        items = [
            f"{draw(number)}{draw(st.sampled_from(['', '', ' * 2', ' + 1']))} AS c{place}"
            for place in range(columns)
        ]
        if kind == "plain" and drawn.shape.by_time and draw(st.integers(0, 3)) == 0:
            return draw(_numbered(items, source, numbers))
        first = draw(_first_rows(drawn, columns, numbers if kind == "plain" else []))
        return (
            f"SELECT {'DISTINCT ' if kind == 'distinct' else ''}{', '.join(items)} {source}{first}"
        )
    functions = (*_WHOLE, *_MORE, *_ONCE, *_WITHIN, *(_SPREAD if drawn.shape.spreads else ()))
    if drawn.shape.by_time:
        functions = (*functions, *_DEFINED_HERE)
    ordered = " ASOF " not in source and not any(entry.select for entry in entries)
    if drawn.shape.by_time and ordered:
        functions = (*functions, *_BY_TIME, *_BY_KEY)
    calls = [
        draw(st.sampled_from(functions)).format(x=draw(number), y=draw(number))
        for _ in range(columns)
    ]
    texts = [text for entry in entries for text in entry.texts]
    if texts and draw(st.integers(0, 3)) == 0:
        counted, measured = draw(st.sampled_from(texts)), draw(st.sampled_from(texts))
        calls[-1] = f"COUNT(DISTINCT {counted}) + length(coalesce(MAX({measured}), ''))"
    if kind == "global":
        having = draw(st.sampled_from(["", "", " HAVING COUNT(*) > 1"]))
        return f"SELECT {_items(calls)} {source}{having}{draw(_first_rows(drawn, columns, []))}"
    key = draw(st.sampled_from([*numbers, *texts, f"{draw(number)} % 2"]))
    if key not in texts and draw(st.booleans()):
        calls[0] = key
    having = draw(
        st.sampled_from(["", "", " HAVING COUNT(*) > 1", f" HAVING MAX({draw(number)}) > 1"])
    )
    first = draw(_first_rows(drawn, columns, [key, "COUNT(*)"]))
    if draw(st.integers(0, 3)) == 0:
        return f"SELECT {_items(calls)} {source} {draw(_sets(key, numbers, calls))}{having}{first}"
    return f"SELECT {_items(calls)} {source} GROUP BY {key}{having}{first}"


@st.composite
def _joined(draw: st.DrawFn, left: _Entry, right: _Entry) -> str:
    """Draw two entries with a comma or an as-of join between them.

    The left one is a stream, so that partitions run the join: the order of rows of several
    partitions would decide between rows at one place.
    """
    if draw(st.integers(0, 2)):
        return f"{left.text}, {right.text}"
    at, other = draw(st.sampled_from(left.numbers)), draw(st.sampled_from(right.numbers))
    if not (right.stored or right.select) and draw(st.booleans()):
        at, other = f"{left.alias}.ts", f"{right.alias}.ts"
    order = f"{at} {draw(st.sampled_from(['>=', '>=', '>', '<=', '<']))} {other}"
    key = f"{draw(st.sampled_from(left.numbers))} = {draw(st.sampled_from(right.numbers))}"
    on = " AND ".join([order, *([key] if draw(st.integers(0, 3)) else [])])
    return f"{left.text} ASOF {draw(st.sampled_from(['', 'LEFT ']))}JOIN {right.text} ON {on}"


@st.composite
def _sets(draw: st.DrawFn, key: str, numbers: list[str], calls: list[str]) -> str:
    """Draw a GROUP BY with several sets of keys, of which one item of the select list tells."""
    other = draw(st.sampled_from(numbers))
    if draw(st.booleans()):
        calls[-1] = draw(
            st.sampled_from(
                [
                    f"GROUPING({key}, {other})",
                    f"GROUPING({key}) * 10 + COUNT(*)",
                    f"coalesce({other}, 7)",
                    other,
                ]
            )
        )
    sets = st.sampled_from(
        [
            "ROLLUP ({0}, {1})",
            "ROLLUP ({1}), {0}",
            "CUBE ({1}, {0})",
            "GROUPING SETS (({1}), {0}, ())",
            "GROUPING SETS (ROLLUP ({0}), ({1}, {0}))",
            "ROLLUP (({0}, {1}))",
        ]
    )
    return f"GROUP BY {draw(sets).format(key, other)}"


@st.composite
def _numbered(draw: st.DrawFn, items: list[str], source: str, numbers: list[str]) -> str:
    """Draw a select with window functions, selected or in QUALIFY or both."""
    call = draw(_over(numbers))
    selected = draw(st.booleans())
    if len(items) > 1 and draw(st.booleans()):
        items = [f"{draw(_over(numbers))} AS c0", *items[1:]]
    if selected:
        items = [*items[:-1], f"{call} AS c{len(items) - 1}"]
    bounds = ["", " <= 2", " < 3", " = 1", " = 2", " > 1"][0 if selected else 1 :]
    bound = draw(st.sampled_from(bounds))
    return f"SELECT {', '.join(items)} {source}{f' QUALIFY {call}{bound}' if bound else ''}"


@st.composite
def _over(draw: st.DrawFn, numbers: list[str]) -> str:
    """Draw a call with OVER: a number of a row, an aggregate over a frame, or a neighbor."""
    number = st.sampled_from(numbers)
    by = draw(st.sampled_from(["", f"PARTITION BY {draw(number)} "]))
    order = draw(st.sampled_from(["", " DESC", " NULLS FIRST", " DESC NULLS FIRST"]))
    function, frame = draw(st.sampled_from(["ROW_NUMBER()", "RANK()", "DENSE_RANK()"])), ""
    if draw(st.booleans()):
        function = draw(st.sampled_from(_OVER)).format(x=draw(number))
        frame = "" if function.startswith("LAG") else draw(st.sampled_from(_FRAMES))
    return f"{function} OVER ({by}ORDER BY {draw(number)}{order}{frame})"


@st.composite
def _first_rows(draw: st.DrawFn, drawn: _Drawn, columns: int, others: list[str]) -> str:
    """Draw ORDER BY with LIMIT, by columns of the result and by other expressions."""
    if not drawn.shape.by_time or draw(st.integers(0, 3)):
        return ""
    names = [*(f"c{place}" for place in range(columns)), "1", *others]
    keys = [
        draw(st.sampled_from(names))
        + draw(st.sampled_from(["", "", " ASC", " DESC"]))
        + draw(st.sampled_from(["", "", " NULLS FIRST", " NULLS LAST"]))
        for _ in range(draw(st.integers(1, 2)))
    ]
    offset = draw(st.sampled_from(["", "", " OFFSET 1", " OFFSET 3"]))
    return f" ORDER BY {', '.join(keys)} LIMIT {draw(st.integers(0, 3))}{offset}"


def _items(calls: list[str]) -> str:
    return ", ".join(f"{call} AS c{place}" for place, call in enumerate(calls))


@st.composite
def _entry(
    draw: st.DrawFn, drawn: _Drawn, depth: int, alias: str, *, streams: bool = False
) -> _Entry:
    """Return a stream, a table or a sub-select."""
    if depth and not streams and draw(st.integers(0, 2)) == 0:
        body, columns = draw(_selects(drawn, depth - 1))
        return _Entry(
            f"({body}) AS {alias}",
            alias,
            tuple(f"{alias}.c{place}" for place in range(columns)),
            (),
            select=True,
        )
    relations: tuple[StreamDeclaration | StoredTable, ...] = (
        drawn.streams if streams else (*drawn.streams, *drawn.tables)
    )
    relation = draw(st.sampled_from(relations))
    numbers = tuple(
        f"{alias}.{name}" for name, declared in relation.columns if declared in _NUMBERS
    )
    texts = tuple(f"{alias}.{name}" for name, declared in relation.columns if declared == "VARCHAR")
    stored = isinstance(relation, StoredTable)
    window = ""
    if drawn.shape.windows and not stored and draw(st.integers(0, 3)) == 0:
        size = draw(st.sampled_from([2, 4, 6]))
        call = draw(st.sampled_from([f"TUMBLE({{}}, {size} SECONDS)", f"HOP({{}}, 2 s, {size} s)"]))
        bounds = f"CAST(epoch({alias}.window_start) AS INTEGER)"
        text = f"{call.format(relation.name)} AS {alias}"
        return _Entry(text, alias, (*numbers, bounds), texts, stored, select="HOP" in call)
    if drawn.shape.windows and not stored:
        column = draw(st.sampled_from([name for name, _ in relation.columns]))
        widths = [
            f"RANGE {draw(st.integers(1, 8))} SECONDS",
            f"ROWS {draw(st.integers(1, 4))}",
            f"PARTITION BY {column} ROWS 2",
            draw(st.sampled_from(["UNBOUNDED", "SINCE '1970-01-01 00:00:04'"])),
        ]
        window = draw(st.sampled_from(["", "", *(f" [{width}]" for width in widths)]))
    return _Entry(f"{relation.name} {alias}{window}", alias, numbers, texts, stored)
