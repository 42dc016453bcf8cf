"""All commands."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from muntin import __version__
from muntin.cli.benching import bench
from muntin.cli.running import RunOptions, run_app
from muntin.cli.scripts import read_app
from muntin.engine.explain_pipeline import describe_any
from muntin.engine.plan_tree import draw, to_dict
from muntin.errors import MuntinError, RunError
from muntin.testing.runner import run_file

app = typer.Typer(help="Continuous queries that join the windows of many streams, exactly.", no_args_is_help=True, add_completion=False)
_progress = Console(stderr=True, highlight=False)

Script = Annotated[Path, typer.Argument(help="a script of CREATE STREAM, CREATE QUERY, ... statements", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON for machines")]


@app.callback()
def common(
    *, version: Annotated[bool, typer.Option("--version", is_eager=True, callback=lambda wanted: _show_version(wanted=wanted))] = False
) -> None:
    """Continuous queries that join the windows of many streams, exactly."""
    del version


def _show_version(*, wanted: bool) -> None:
    if wanted:
        typer.echo(f"muntin {__version__}")
        raise typer.Exit


@app.command()
def demo(
    seconds: Annotated[float, typer.Option(min=1, help="how long to show it, from when Spark has caught up")] = 20.0,
    rate: Annotated[int, typer.Option(min=1, max=100_000, help="readings a second and stream")] = 400,
) -> None:
    """Two generated sensor streams and three standing queries on a local Spark, results as they change."""
    from muntin.cli.demo import run_demo  # noqa: PLC0415 (pyspark takes a second to import)

    run_demo(seconds, rate)


@app.command()
def run(  # noqa: PLR0913 (typer takes options as parameters)
    script: Script,
    *,
    once: Annotated[bool, typer.Option("--once", help="stop when all available input is processed")] = False,
    until: Annotated[str | None, typer.Option(help="like --once, then advance time to this instant, such as '2026-01-31 12:00:00'")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="folder from which a later run goes on; default: none is kept")] = None,
    master: Annotated[str | None, typer.Option(help="where Spark runs, as spark-submit wants it; default: in this machine")] = None,
    buckets: Annotated[int | None, typer.Option(min=1, help="into how many shares the work is cut; default: one a core")] = None,
    trigger: Annotated[str, typer.Option(help="how often a micro-batch begins")] = "0 seconds",
    heartbeat: Annotated[
        str | None, typer.Option(help="how far behind the clock time moves although no row comes; default: only rows move it")
    ] = None,
    log: Annotated[Path | None, typer.Option(help="file to which a line is added for every batch, and for start and end")] = None,
    as_json: AsJson = False,
) -> None:
    """Run a script on Spark, until Ctrl-C or with --once until its input is processed."""
    run_app(script, RunOptions(once, checkpoint, master, buckets, trigger, heartbeat, log, as_json, until))


@app.command()
def check(script: Script, *, as_json: AsJson = False) -> None:
    """Parse and bind a script; exit 0, or 2 with the error."""
    plans = read_app(script)
    if as_json:
        typer.echo(json.dumps({"script": str(script), "queries": [plan.query.name for plan in plans]}))
    else:
        _progress.print(f"{script}: ok, {len(plans)} {'query' if len(plans) == 1 else 'queries'}")


@app.command()
def explain(script: Script, *, as_json: AsJson = False) -> None:
    """Print the plans of a script's queries; touches no data."""
    plans = read_app(script)
    if as_json:
        typer.echo(json.dumps([to_dict(describe_any(plan)) for plan in plans], indent=2))
    else:
        typer.echo("\n\n".join(draw(describe_any(plan)) for plan in plans) or "no queries")


@app.command()
def test(
    scripts: Annotated[list[Path], typer.Argument(help="golden scripts (.cqt)", show_default=False)],
    *,
    complete: Annotated[bool, typer.Option("--complete", help="write out and state blocks as they come out")] = False,
    setting: Annotated[list[str] | None, typer.Option("--set", help="name=value, overrides the script's settings")] = None,
    as_json: AsJson = False,
) -> None:
    """Run golden scripts; exit 1 when a check fails."""
    missing = [str(path) for path in scripts if not path.is_file()]
    if missing:
        raise typer.BadParameter(f"there is no file {', '.join(missing)}")
    settings: dict[str, object] = {}
    for text in setting or []:
        name, equals, value = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"--set wants name=value, not {text!r}")
        settings[name.strip()] = value.strip()
    reports = [run_file(path, complete=complete, settings=settings) for path in scripts]
    failed = [report for report in reports if not report.ok]
    if as_json:
        outcome = [
            {"script": report.path, "ok": report.ok, "failures": [f"line {f.line}: {f.message}" for f in report.failures]}
            for report in reports
        ]
        typer.echo(json.dumps(outcome, indent=2))
    else:
        for report in reports:
            typer.echo(str(report))
        typer.echo(f"{len(reports) - len(failed)} passed, {len(failed)} failed")
    if failed:
        raise typer.Exit(1)


app.command()(bench)


def main() -> None:
    """Run the command line; users' mistakes end with exit code 2, failures with 1, and a message, without a traceback."""
    try:
        app()
    except MuntinError as error:
        _progress.print(f"[red]error:[/red] {escape(str(error))}", soft_wrap=True)
        sys.exit(1 if isinstance(error, RunError) else 2)
    except BrokenPipeError:
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
