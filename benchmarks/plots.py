"""Plots of benchmarks as SVG: lines or bars.

This module alone imports matplotlib, which is part of the extra ``dev``.

A benchmark describes its plots in its report; ``python -m benchmarks`` draws them when it writes
the JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

from muntin.errors import RunError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INCHES = (7.0, 4.2)
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: small files and readable diffs
    "svg.hashsalt": "muntin",  # the same plot is the same file
    "font.family": "sans-serif",
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 9,
}
_GROUP = 0.8
"""How much of the room of a group its bars take."""
_MOST_TOLD = 18
"""Largest number of bars with figures above them."""
_LETTERS = 72
"""Letters in a line below all bars."""
_TITLE = 60
"""Letters in a line above."""
_HEADROOM = 1.1
_FEW = 30
"""Span of figures below which bars need no logarithmic axis.

An axis with a smaller span also has labels between the powers of ten.
"""
_IN_A_LINE = 4
"""Names of series side by side."""
_MARKERS = "osD^vPX*<>"


class PlotError(RunError):
    """A plot cannot be drawn."""


@dataclass(frozen=True)
class Plot:
    """What to draw: for each name in ``series`` its points, from left to right.

    Parameters
    ----------
    file
        The name of the file, without its ending.
    title, x, y
        What stands above, below and beside it.
    series
        Points by name. The places of bars are names; all series of bars have the same.
    kind
        Lines with a mark at each point, or groups of bars.
    log
        The axes that are logarithmic: any of the letters x and y. Marks on such an x axis are where
        there are points. Bars have a logarithmic axis only if they differ much.
    """

    file: str
    title: str
    x: str
    y: str
    series: Mapping[str, Sequence[tuple[float | str, float]]]
    kind: Literal["line", "bar"] = "line"
    log: Literal["", "x", "y", "xy"] = ""

    @property
    def filename(self) -> str:
        """The name of the file."""
        return f"{self.file}.svg"

    @property
    def values(self) -> list[float]:
        """All heights."""
        return [value for points in self.series.values() for _, value in points]

    @property
    def has_log_y(self) -> bool:
        """Whether heights are logarithmic: only if small bars would be invisible otherwise."""
        few = self.kind == "bar" and max(self.values) < _FEW * min(self.values)
        return "y" in self.log and not few

    def to_dict(self) -> dict[str, Any]:
        """For JSON: all that is needed to draw it again."""
        series = {name: [list(point) for point in points] for name, points in self.series.items()}
        return {
            "file": self.filename,
            "title": self.title,
            "x": self.x,
            "y": self.y,
            "series": series,
            "kind": self.kind,
            "log": self.log,
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Plot:
        """Return the plot that JSON describes."""
        series = {
            name: [(place, value) for place, value in points]
            for name, points in document["series"].items()
        }
        rest = {key: document[key] for key in ("title", "x", "y", "kind", "log")}
        return cls(document["file"].removesuffix(".svg"), series=series, **rest)


def draw(plot: Plot, folder: Path, ending: str = "svg") -> Path:
    """Draw a plot into a folder; raises :class:`PlotError` without matplotlib."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 (only who draws needs it)
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise PlotError(
            f"{plot.filename} is not drawn, since there is no matplotlib",
            hint="Install it: pip install 'muntin[dev]'",
        ) from error
    path = folder / f"{plot.file}.{ending}"
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=_INCHES, layout="constrained")
        axes = figure.add_subplot()
        if plot.kind == "bar":
            _bars(axes, plot)
        else:
            _lines(axes, plot)
        if plot.has_log_y:
            axes.set_yscale("log")
            least, most = axes.get_ylim()
            axes.yaxis.set_minor_formatter(_plain if most < _FEW * least else "")
        else:
            axes.set_ylim(0, _HEADROOM * max(plot.values) or 1.0)
        axes.yaxis.set_major_formatter(_plain)
        axes.set_title(fill(plot.title, _TITLE), loc="left", fontweight="bold")
        axes.set_xlabel(plot.x)
        axes.set_ylabel(plot.y)
        if len(plot.series) > 1:
            figure.legend(loc="outside lower center", ncols=min(len(plot.series), _IN_A_LINE))
        figure.savefig(path, metadata={"Date": None} if ending == "svg" else None)
    return path


def _plain(value: float, _: object = None) -> str:
    """Return a figure beside an axis, without powers of ten.

    >>> [_plain(value) for value in (0.05, 3.0, 120_000)]
    ['0.05', '3', '120,000']
    """
    return f"{value:,.10g}"


def _lines(axes: Axes, plot: Plot) -> None:
    for number, (name, points) in enumerate(plot.series.items()):
        marker = _MARKERS[number % len(_MARKERS)]
        # What a plot is about comes first, and hides lines that are the same.
        order = 3 - number / len(plot.series)
        axes.plot(
            [place for place, _ in points],
            [value for _, value in points],
            marker=marker,
            markersize=5,
            label=name,
            zorder=order,
        )
    if "x" in plot.log:
        axes.set_xscale("log")
        places = sorted({float(place) for points in plot.series.values() for place, _ in points})
        axes.set_xticks(places, [_plain(place) for place in places])
        axes.minorticks_off()


def _bars(axes: Axes, plot: Plot) -> None:
    places = [str(place) for place, _ in next(iter(plot.series.values()))]
    width = _GROUP / max(len(plot.series), 2)
    bars = len(plot.series) * len(places)
    for number, (name, points) in enumerate(plot.series.items()):
        assert [str(place) for place, _ in points] == places, (
            f"{plot.file}: all series of bars have the same places"
        )
        left = [
            place + (number + 0.5 - len(plot.series) / 2) * width for place in range(len(places))
        ]
        drawn = axes.bar(left, [value for _, value in points], width, label=name)
        if bars <= _MOST_TOLD:
            axes.bar_label(drawn, [_told(value) for _, value in points], padding=2, fontsize=8)
    axes.set_xticks(
        range(len(places)),
        [fill(place, max(_LETTERS // len(places), 6), break_long_words=False) for place in places],
    )
    axes.grid(visible=False, axis="x")


def _told(value: float) -> str:
    """Return a figure above its bar.

    >>> [_told(value) for value in (0.1234, 12.34, 1234.5)]
    ['0.123', '12.3', '1,234']
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
