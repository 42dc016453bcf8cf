"""Names and data on terminals and in logs: one table of hostile texts, tried at every edge."""

from __future__ import annotations

import io
import logging
import re
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import muntin
from muntin.cli import main
from muntin.cli.progress_view import ProgressView, Screen
from muntin.model.printable import LOGGERS, printable, printable_lines
from muntin.plan.description import Description, draw
from muntin.spark.batch_results import BatchResults
from muntin.spark.console_sink import ConsoleSink

HOSTILE = [
    ("a\nb", r"a\nb"),
    ("a\r2026-01-01 INFO forged", r"a\r2026-01-01 INFO forged"),
    ("tab\there", r"tab\there"),
    ("\x1b[2J\x1b[31mred", r"\x1b[2J\x1b[31mred"),
    ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
    ("\x9b31m", r"\x9b31m"),
    ("nul\x00del\x7f", r"nul\x00del\x7f"),
    ("abc\u202efdp.exe", r"abc\u202efdp.exe"),
    ("\u2066isolate\u2069", r"\u2066isolate\u2069"),
    ("mark\u200e\u200f\u061c", r"mark\u200e\u200f\u061c"),
    ("line\u2028paragraph\u2029next\x85", r"line\u2028paragraph\u2029next\x85"),
    ("zero\u200bwidth\ufeff", r"zero\u200bwidth\ufeff"),
    ("tag\U000e0041", r"tag\U000e0041"),
    ("lone\udc80", r"lone\udc80"),
]
HARMLESS = [
    "",
    "plain",
    "ä ß 漢字 עברית",
    "[bold]x[/bold]",
    "a\\nb",
    "non\u00a0breaking",
    "👨\u200d👩\u200d👧",
    "न\u200cन",
]
IDS = [shown for _, shown in HOSTILE]


@pytest.mark.parametrize(("text", "shown"), HOSTILE, ids=IDS)
def test_unsafe_characters_become_escapes(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable_lines(text) == shown.replace(r"\n", "\n")


@pytest.mark.parametrize("text", HARMLESS)
def test_other_text_is_unchanged(text: str) -> None:
    assert printable(text) == text


@given(st.text())
def test_whatever_the_text_one_safe_line_comes_out(text: str) -> None:
    shown = printable(text)
    assert len((shown + "x").splitlines()) == 1
    assert not [char for char in shown if unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"}]
    assert printable(shown) == shown


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """Yield the stream to which a user's log handler writes Muntin's records."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    yield text
    root.removeHandler(handler)


@pytest.mark.parametrize(("text", "shown"), HOSTILE, ids=IDS)
@pytest.mark.parametrize("name", LOGGERS)
def test_log_records_are_one_line_each(
    logged: io.StringIO, name: str, text: str, shown: str
) -> None:
    logging.getLogger(name).warning("query %s: 100 %% of %d", text, 3)
    assert logged.getvalue() == f"WARNING query {shown}: 100 % of 3\n"


def test_a_traceback_in_a_log_cannot_pass_for_a_record(logged: io.StringIO) -> None:
    error = ValueError("x\nERROR forged\x1b[2J")
    logging.getLogger("muntin").error("failed", exc_info=error)
    first, *rest = logged.getvalue().splitlines()
    assert first == "ERROR failed"
    assert rest
    assert all(line.startswith("    ") for line in rest)
    assert "\x1b" not in logged.getvalue()


def test_every_logger_of_the_package_is_one_of_those_that_escape() -> None:
    source = Path(muntin.__file__).parent
    used = {
        name
        for path in source.rglob("*.py")
        for name in re.findall(r'getLogger\("([^"]*)"\)', path.read_text(encoding="utf-8"))
    }
    assert used <= set(LOGGERS)


@pytest.mark.parametrize(("text", "shown"), HOSTILE, ids=IDS)
def test_the_console_sink_prints_safe_lines(
    text: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    value = text.encode("utf-8", "ignore").decode()  # Arrow holds no lone surrogates
    ConsoleSink(text).write(BatchResults.of(pa.table({"n" + value: [value, "y"]})), 3)
    safe = shown.replace(r"\udc80", "")
    assert capsys.readouterr().out == f"-- {shown}, batch 3: 2 changes\nn{safe}\n{safe}\ny\n"


@pytest.mark.parametrize(("text", "shown"), HOSTILE, ids=IDS)
def test_plans_are_drawn_with_one_safe_line_per_node(text: str, shown: str) -> None:
    assert draw(Description("query", f"query {text}")) == f"query {shown}"


def _progress(name: str) -> dict[str, object]:
    times = {"mean": 0.0, "p95": 0.0, "max": 0.0}
    failing = {"rows_left_out": 0, "failures": 1, "last_failure": name}
    ours = {
        "streams": {name: {"rows": 1, "late": 0}},
        "results": {name: 1},
        "queries": {name: {"batch_response_seconds": times, "subscribers": [failing]}},
        "watermark": None,
        "newest": None,
        "rows_held": 0,
        "unsent": 0,
    }
    return {"batchId": 1, "muntin": ours}


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize(("text", "shown"), HOSTILE, ids=IDS)
def test_progress_shows_names_and_failures_safely(
    text: str,
    shown: str,
    terminal: bool,  # noqa: FBT001
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    screen = Screen(ProgressView(None))
    assert screen.live == terminal
    with screen.shown():
        screen.update(_progress(text), last=True)
    said = capsys.readouterr().err
    assert shown in said
    assert text not in said


@pytest.mark.parametrize(("text", "shown"), HOSTILE, ids=IDS)
def test_errors_on_the_terminal_are_safe(
    text: str,
    shown: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = text.encode("utf-8", "ignore").decode().replace("\0", "")  # scripts hold no others
    script = tmp_path / "app.sql"
    script.write_text(
        f'CREATE QUERY q AS SELECT k FROM "{name}" WINDOW 1 SECOND;', encoding="utf-8", newline=""
    )
    monkeypatch.setattr(sys, "argv", ["muntin", "check", str(script)])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert [char for char in said.removesuffix("\n") if printable(char) != char] == []
    assert shown.replace(r"\udc80", "").replace(r"\x00", "").replace(r"\r", r"\n") in said.replace(
        r"\r", r"\n"
    )
