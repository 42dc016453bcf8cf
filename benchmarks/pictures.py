"""Pictures of a report: the plots it describes, or for short reports plots made from their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.plots import Plot

Row = Mapping[str, Any]
Points = list[tuple[float | str, float]]


def pictures_of(document: Mapping[str, Any]) -> list[Plot]:
    """Return the plots that the JSON of a benchmark allows."""
    described = [Plot.from_dict(plot) for plot in document.get("plots", []) if "series" in plot]
    make = _FROM_ROWS.get(document["name"])
    if described or make is None:
        return described
    try:
        return make(document["rows"])
    except LookupError:  # rows of another form than its benchmark makes today
        return []


def _spread(rows: Sequence[Row], place: str, middle: str) -> dict[str, Points]:
    """Least, median and most of repeated runs, side by side."""
    names = {"least": "least", "median": middle, "most": "most"}
    return {name: [(row[place], row[column]) for row in rows] for name, column in names.items()}


def _join(rows: Sequence[Row]) -> list[Plot]:
    title = f"Two streams, {rows[0]['input rows']:,} rows, {rows[0]['results']:,} results"
    return [Plot("join", title, "", "seconds", _spread(rows, "system", "seconds"), "bar")]


def _window(rows: Sequence[Row]) -> list[Plot]:
    series: dict[str, Points] = {"": [(row["window seconds"], row["ns per row"]) for row in rows]}
    return [
        Plot(
            "window",
            "Time a row against the size of the window",
            "window, seconds",
            "ns per row",
            series,
            log="x",
        )
    ]


def _memory(rows: Sequence[Row]) -> list[Plot]:
    series: dict[str, Points] = {
        name: [(row["windows passed"], row[column]) for row in rows]
        for name, column in (("process", "process MB"), ("window state", "state MB"))
    }
    return [
        Plot(
            "memory",
            "Memory of a query that runs for long",
            "lengths of the window that have passed",
            "MB",
            series,
        )
    ]


def _start(rows: Sequence[Row]) -> list[Plot]:
    series: dict[str, Points] = {"": [(row["start"], row["seconds"]) for row in rows]}
    return [Plot("start", "From a new process to the first answer", "", "seconds", series, "bar")]


def _orders(rows: Sequence[Row]) -> list[Plot]:
    columns = {
        "measured": "ratio",
        "[Golab03, Table 8]": "paper: ratio",
        "comparisons": "ratio of comparisons",
    }
    series: dict[str, Points] = {
        name: [(row["join"], row[column]) for row in rows] for name, column in columns.items()
    }
    return [
        Plot(
            "orders",
            "What the join order is worth",
            "",
            "best over worst order, input rate",
            series,
            "bar",
        )
    ]


def _replan(rows: Sequence[Row]) -> list[Plot]:
    series: dict[str, Points] = {
        "": [(row["query"], row["rows/s after the change"]) for row in rows]
    }
    return [Plot("replan", "After rates have changed", "query", "rows per second", series, "bar")]


def _choice(rows: Sequence[Row]) -> list[Plot]:
    ranked = sorted(rows, key=lambda row: float(row["ratio"]))
    columns = {"slowest order": "slowest over best", "chosen order": "ratio"}
    series: dict[str, Points] = {
        name: [(place, row[column]) for place, row in enumerate(ranked, 1)]
        for name, column in columns.items()
    }
    return [
        Plot(
            "choice",
            "Time of join orders over the best that was tried",
            "case, ranked",
            "time over the best order's",
            series,
            log="y",
        )
    ]


def _groups(rows: Sequence[Row]) -> list[Plot]:
    series: dict[str, Points] = {
        result: [
            (row["values"], row["rows per CPU second"]) for row in rows if row["results"] == result
        ]
        for result in dict.fromkeys(row["results"] for row in rows)
    }
    return [
        Plot(
            "groups",
            "Sliding GROUP BY of 10,000 groups, one core",
            "values",
            "rows per CPU second",
            series,
            "bar",
        )
    ]


def _spark(rows: Sequence[Row]) -> list[Plot]:
    series: dict[str, Points] = {
        system: [
            (f"files per trigger: {row['files per trigger']}", row["rows per second"])
            for row in rows
            if row["system"] == system
        ]
        for system in dict.fromkeys(row["system"] for row in rows)
    }
    return [Plot("spark", "One window join on Spark", "", "rows per second", series, "bar")]


def _spark_batches(rows: Sequence[Row]) -> list[Plot]:
    series: dict[str, Points] = {
        str(system): [
            (f"{row['rows per stream and batch']:,}", row["milliseconds"])
            for row in rows
            if row["system"] == system
        ]
        for system in dict.fromkeys(row["system"] for row in rows)
    }
    axis = "rows of each stream per micro-batch"
    return [Plot("spark-batches", "A micro-batch on Spark", axis, "milliseconds", series, "bar")]


def _state(rows: Sequence[Row]) -> list[Plot]:
    batches = [
        {**row, "windows": str(row["measured"]).partition(", ")[2]}
        for row in rows
        if str(row["measured"]).startswith("batch of")
    ]
    kept = [row for row in rows if row["unit"] == "bytes per row in memory" and row["median"] > 0]
    memory: dict[str, Points] = {"": [(row["measured"], row["median"]) for row in kept]}
    return [
        Plot(
            "state",
            "A micro-batch of 1,000 new rows",
            "",
            "ms",
            _spread(batches, "windows", "median"),
            "bar",
        ),
        Plot("state-memory", "State on Spark", "", "bytes per row in memory", memory, "bar"),
    ]


def _aggregate(rows: Sequence[Row]) -> list[Plot]:
    series: dict[str, Points] = {"": [(row["system"], row["rows per second"]) for row in rows]}
    return [
        Plot("spark-aggregate", "Sliding GROUP BY on Spark", "", "rows per second", series, "bar")
    ]


def _spark_driver(rows: Sequence[Row]) -> list[Plot]:
    cpu: Points = [
        (str(row["measured"]), row["at the end"] - row["after the first batches"])
        for row in rows
        if row["unit"] == "s"
    ]
    return [Plot("spark-driver", "CPU of all processes", "", "seconds", {"": cpu}, "bar")]


def _overload_windows(rows: Sequence[Row]) -> list[Plot]:
    shares = [name for name in rows[0] if name.endswith("%")]
    places = ["least", *shares]
    series: dict[str, Points] = {
        str(row["jaqpot"]): [(place, row[place]) for place in places]
        for row in rows
        if row["plans"] == "all"
    }
    title = f"jaqpot relative to the best other policy, {rows[0]['number']} random plans"
    axis = "least, and share of the plans that are below"
    return [Plot("overload-windows", title, axis, "ratio", series, "bar")]


_FROM_ROWS: Mapping[str, Callable[[Sequence[Row]], list[Plot]]] = {
    "join": _join,
    "window": _window,
    "memory": _memory,
    "start": _start,
    "orders": _orders,
    "replan": _replan,
    "choice": _choice,
    "groups": _groups,
    "overload-windows": _overload_windows,
    "spark": _spark,
    "spark-batches": _spark_batches,
    "state": _state,
    "spark-aggregate": _aggregate,
    "spark-driver": _spark_driver,
}
