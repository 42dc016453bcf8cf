"""Plots: file contents, reproducibility, the message without matplotlib, names in reports."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from textwrap import wrap

import pytest

from benchmarks.__main__ import bench
from benchmarks.catalogue import BENCHMARKS
from benchmarks.pages import page_of, read_documents
from benchmarks.pictures import pictures_of
from benchmarks.plots import Plot, PlotError, draw
from benchmarks.report import Report

LINES = Plot(
    "time",
    "Time by queries",
    "queries",
    "seconds",
    {"ours": [(1, 2.0), (64, 3.0)], "theirs": [(1, 20.0)]},
    log="xy",
)
BARS = Plot(
    "rates",
    "Rates",
    "system",
    "rows/s",
    {"hash": [("LWO", 1.0), ("MQT", 2.0)], "loop": [("LWO", 3.0), ("MQT", 4.0)]},
    kind="bar",
)


@pytest.mark.parametrize("plot", [LINES, BARS])
def test_a_plot_has_its_words_and_is_the_same_file_each_time(tmp_path: Path, plot: Plot) -> None:
    path = draw(plot, tmp_path)
    assert path == tmp_path / plot.filename
    text = path.read_text(encoding="utf-8")
    places = ("1", "64") if plot is LINES else ("LWO", "MQT")
    for word in (plot.title, plot.x, plot.y, *plot.series, *places):
        assert f">{word}<" in text
    assert draw(plot, tmp_path).read_text(encoding="utf-8") == text


def test_series_of_bars_have_the_same_places(tmp_path: Path) -> None:
    uneven = replace(BARS, series={**BARS.series, "third": [("SWF", 1.0)]})
    with pytest.raises(AssertionError, match="rates: all series of bars have the same places"):
        draw(uneven, tmp_path)


def test_without_matplotlib_the_figures_are_written_and_a_message_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(PlotError, match=r"time\.svg is not drawn, since there is no matplotlib"):
        draw(LINES, tmp_path)
    report = Report("join", "Why?", [{"figure": 1}], plots=[LINES])
    monkeypatch.setitem(BENCHMARKS, "join", lambda *_, **__: report)
    bench(["join"], output=tmp_path, quick=True, as_json=True)
    assert "pip install 'muntin[dev]'" in capsys.readouterr().err
    assert json.loads((tmp_path / "join.json").read_text(encoding="utf-8"))["plots"] == [
        LINES.to_dict()
    ]


def test_a_report_with_plots_shows_them_on_the_page() -> None:
    report = json.loads(Report("join", "Why?", [{"figure": 1}], plots=[LINES]).to_json())
    assert "![Time by queries](time.svg)" in page_of("join", report)
    assert "![" not in page_of("join", {**report, "plots": []})


@pytest.mark.parametrize("plot", [LINES, BARS])
def test_a_plot_is_the_same_from_json(tmp_path: Path, plot: Plot) -> None:
    read = Plot.from_dict(json.loads(json.dumps(plot.to_dict())))
    assert read == plot
    assert draw(read, tmp_path).read_text(encoding="utf-8") == draw(plot, tmp_path).read_text(
        encoding="utf-8"
    )


DOCUMENTS = read_documents(Path(__file__).parents[2] / "docs" / "results")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_benchmark_has_a_picture(tmp_path: Path, name: str) -> None:
    document = DOCUMENTS[name]
    assert "![" in page_of(name, document)
    for plot in pictures_of(document)[:2]:
        drawn = draw(plot, tmp_path).read_text(encoding="utf-8")
        assert all(line in drawn for line in wrap(plot.title, 60))


def test_bars_are_labeled_with_their_figures_unless_there_are_many(tmp_path: Path) -> None:
    few = Plot("few", "Few", "", "ms", {"": [("a", 1234.5), ("b", 0.25)]}, kind="bar")
    many = replace(few, series={"": [(str(place), 1234.5) for place in range(40)]})
    assert ">1,234<" in draw(few, tmp_path).read_text(encoding="utf-8")
    assert ">1,234<" not in draw(many, tmp_path).read_text(encoding="utf-8")


@pytest.mark.parametrize(("least", "log"), [(100.0, False), (1.0, True)])
def test_bars_start_at_zero_unless_they_differ_much(
    least: float,
    log: bool,  # noqa: FBT001
) -> None:
    assert replace(BARS, series={"": [("a", least), ("b", 1_000.0)]}, log="y").has_log_y is log
