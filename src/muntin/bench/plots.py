"""Plots of benchmarks: lines or bars, as SVG beside the figures. The only home of matplotlib, which is part of the extra ``dev``.

A benchmark describes its plots in its report; ``muntin bench`` draws them when it writes the JSON.
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
    "svg.fonttype": "none",  # letters stay letters: small files, and what changes can be read in a diff
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
"""So many bars have their figures above them."""
_LINE = 20
"""Letters in a line below a bar."""
_MARKERS = "osD^vPX*<>"
_MOST_INSIDE = 5
"""Series whose names find room among them; those of more stand beside."""


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
        The axes that are logarithmic: any of the letters x and y. Marks on such an x axis are where there are points.
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

    def to_dict(self) -> dict[str, Any]:
        """For JSON: all that is needed to draw it again."""
        series = {name: [list(point) for point in points] for name, points in self.series.items()}
        return {"file": self.filename, "title": self.title, "x": self.x, "y": self.y, "series": series, "kind": self.kind, "log": self.log}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Plot:
        """The plot of which JSON tells."""
        series = {name: [(place, value) for place, value in points] for name, points in document["series"].items()}
        rest = {key: document[key] for key in ("title", "x", "y", "kind", "log")}
        return cls(document["file"].removesuffix(".svg"), series=series, **rest)


def draw(plot: Plot, folder: Path, ending: str = "svg") -> Path:
    """Draw a plot into a folder; raises :class:`PlotError` without matplotlib."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 (only who draws needs it)
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise PlotError(
            f"{plot.filename} is not drawn, since there is no matplotlib", hint="Install it: pip install 'muntin[dev]'"
        ) from error
    path = folder / f"{plot.file}.{ending}"
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=_INCHES, layout="constrained")
        axes = figure.add_subplot()
        if plot.kind == "bar":
            _bars(axes, plot)
        else:
            _lines(axes, plot)
        if "y" in plot.log:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        axes.set_title(plot.title, loc="left", fontweight="bold")
        axes.set_xlabel(plot.x)
        axes.set_ylabel(plot.y)
        if len(plot.series) > 1:
            beside: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1, 0.5)} if len(plot.series) > _MOST_INSIDE else {}
            axes.legend(**beside)
        figure.savefig(path, metadata={"Date": None} if ending == "svg" else None)
    return path


def _lines(axes: Axes, plot: Plot) -> None:
    for number, (name, points) in enumerate(plot.series.items()):
        marker = _MARKERS[number % len(_MARKERS)]
        axes.plot([place for place, _ in points], [value for _, value in points], marker=marker, markersize=5, label=name)
    if "x" in plot.log:
        axes.set_xscale("log")
        places = sorted({float(place) for points in plot.series.values() for place, _ in points})
        axes.set_xticks(places, [f"{place:,.10g}" for place in places])
        axes.minorticks_off()


def _bars(axes: Axes, plot: Plot) -> None:
    places = [str(place) for place, _ in next(iter(plot.series.values()))]
    width = _GROUP / max(len(plot.series), 2)
    bars = len(plot.series) * len(places)
    for number, (name, points) in enumerate(plot.series.items()):
        assert [str(place) for place, _ in points] == places, f"{plot.file}: all series of bars have the same places"
        left = [place + (number + 0.5 - len(plot.series) / 2) * width for place in range(len(places))]
        drawn = axes.bar(left, [value for _, value in points], width, label=name)
        if bars <= _MOST_TOLD:
            axes.bar_label(drawn, [_told(value) for _, value in points], padding=2, fontsize=8)
    axes.set_xticks(range(len(places)), [fill(place, _LINE, break_long_words=False) for place in places])
    axes.grid(visible=False, axis="x")
    if bars <= _MOST_TOLD and "y" not in plot.log:
        axes.margins(y=0.15)


def _told(value: float) -> str:
    """A figure above its bar.

    >>> [_told(value) for value in (0.1234, 12.34, 1234.5)]
    ['0.123', '12.3', '1,234']
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
