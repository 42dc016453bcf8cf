"""The commands."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperCommand

from muntin import __version__
from muntin.cli.plan import plan_app
from muntin.cli.project_files import RUN_ONCE, write_project
from muntin.cli.run import RunOptions, run_app
from muntin.cli.scripts import InvalidScriptError, check_app, read_app
from muntin.console.address import DEFAULT, is_address
from muntin.engine.explain_pipeline import describe_any
from muntin.engine.script_check import Scope
from muntin.errors import MuntinError, RunError, SqlError
from muntin.model.allowed_paths import AllowedPaths
from muntin.model.printable import printable, printable_lines
from muntin.plan.description import draw, to_dict
from muntin.spark.replacement import Replacement
from muntin.testing.runner import run_file

app = typer.Typer(
    help="Continuous queries that join the windows of many streams, exactly.",
    no_args_is_help=True,
    add_completion=False,
)
_progress = Console(stderr=True, highlight=False)

Script = Annotated[
    Path,
    typer.Argument(
        help="Script of CREATE STREAM, CREATE QUERY, ... statements.", show_default=False
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print machine-readable JSON.")]
AllowPath = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-path",
        help="Folder or URL that the script may access; repeatable. Default: any.",
    ),
]

Master = Annotated[
    str | None, typer.Option(help="Spark master, as for spark-submit. Default: this machine.")
]
Partitions = Annotated[
    int | None, typer.Option(min=1, help="Number of state partitions. Default: one per core.")
]
Replace = Annotated[
    list[str] | None,
    typer.Option(
        metavar="QUERY", help="Start this query again and delete its earlier output; repeatable."
    ),
]
ReplaceAll = Annotated[
    bool,
    typer.Option(
        "--replace-all",
        help="Do so for every query that has changed, and delete output of other runs.",
    ),
]


@app.callback()
def common(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            is_eager=True,
            callback=lambda wanted: _show_version(wanted=wanted),
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    """Continuous queries that join the windows of many streams, exactly."""
    del version


def _show_version(*, wanted: bool) -> None:
    if wanted:
        typer.echo(f"muntin {__version__}")
        raise typer.Exit


@app.command()
def demo(
    seconds: Annotated[float, typer.Option(min=1, help="Duration of an act.")] = 10.0,
    rate: Annotated[
        int, typer.Option(min=1, max=100_000, help="Readings per second and stream.")
    ] = 400,
) -> None:
    """Play three acts on a local Spark: one query, sixteen queries, three times the load."""
    from muntin.cli.demo import run_demo  # noqa: PLC0415 (pyspark takes a second to import)

    run_demo(seconds, rate)


class _RunCommand(TyperCommand):
    """``muntin run``, whose ``--console`` may come without an address, which typer cannot say."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give a bare ``--console`` its default."""
        given = []
        for place, each in enumerate(args):
            following = args[place + 1] if place + 1 < len(args) else ""
            bare = each == "--console" and not is_address(following)
            given += [f"--console={DEFAULT}"] if bare else [each]
        return super().parse_args(ctx, given)


@app.command(cls=_RunCommand)
def run(  # noqa: PLR0913 (typer takes options as parameters)
    script: Script,
    *,
    once: Annotated[
        bool, typer.Option("--once", help="Stop when all available input is processed.")
    ] = False,
    until: Annotated[
        str | None,
        typer.Option(
            help="Like --once, then advance time to this instant, such as '2026-01-31 12:00:00'."
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(help="Folder or URL from which a later run resumes. Default: none."),
    ] = None,
    master: Master = None,
    partitions: Partitions = None,
    buckets: Annotated[int | None, typer.Option(min=1, hidden=True)] = None,
    trigger: Annotated[
        str, typer.Option(help="Interval between the starts of micro-batches.")
    ] = "0 seconds",
    heartbeat: Annotated[
        str | None,
        typer.Option(
            help="Advance time without rows, to this interval behind the clock. "
            "Default: only rows advance time."
        ),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(help="File to which a line is appended for every batch, start and end."),
    ] = None,
    allow_path: AllowPath = None,
    replace: Replace = None,
    replace_all: ReplaceAll = False,
    console: Annotated[
        str | None,
        typer.Option(
            metavar="[HOST:PORT]",
            help="Serve the web console; its address is printed. Default: 127.0.0.1:8321.",
        ),
    ] = None,
    console_read_only: Annotated[
        bool,
        typer.Option("--console-read-only", help="Let the console add and drop no queries."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run a script on Spark until Ctrl-C, or with --once until its input is processed."""
    if buckets is not None:
        typer.echo("warning: --buckets is now --partitions", err=True)
        partitions = buckets if partitions is None else partitions
    run_app(
        script,
        RunOptions(
            once,
            checkpoint,
            master,
            partitions,
            trigger,
            heartbeat,
            log,
            as_json,
            _given(allow_path),
            Replacement(replace_all, tuple(replace or ()), shlex.join(["muntin", *sys.argv[1:]])),
            until,
            console,
            console_read_only,
        ),
    )


@app.command()
def plan(  # noqa: PLR0913 (typer takes options as parameters)
    script: Script,
    *,
    checkpoint: Annotated[
        str,
        typer.Option(help="Folder or URL that the run would resume from.", show_default=False),
    ],
    master: Master = None,
    partitions: Partitions = None,
    allow_path: AllowPath = None,
    replace: Replace = None,
    replace_all: ReplaceAll = False,
    as_json: AsJson = False,
) -> None:
    """Print what a run would keep, start again, drop or refuse in a checkpoint; change nothing."""
    command = shlex.join(["muntin", "run", *sys.argv[2:]])
    plan_app(
        script,
        RunOptions(
            checkpoint=checkpoint,
            master=master,
            partitions=partitions,
            as_json=as_json,
            allowed_paths=_given(allow_path),
            replace=Replacement(replace_all, tuple(replace or ()), command),
        ),
    )


@app.command()
def check(script: Script, *, allow_path: AllowPath = None, as_json: AsJson = False) -> None:
    """Check a script, its plans, files and folders; exit 0, or 2 with all errors."""
    found, errors = check_app(script, Scope(AllowedPaths.of(_given(allow_path))))
    names = [plan.query.name for plan in found.plans.values()]
    if as_json:
        more: dict[str, object] = {"notes": found.notes} if found.notes else {}
        more |= {"errors": [_to_json(error) for error in errors]} if errors else {}
        typer.echo(json.dumps({"script": str(script), "queries": names, **more}))
        raise typer.Exit(2 if errors else 0)
    for note in found.notes:
        _progress.print(f"note: {printable(note)}", markup=False, soft_wrap=True)
    if errors:
        raise InvalidScriptError(errors)
    _progress.print(
        printable(f"{script}: ok, {len(names)} {'query' if len(names) == 1 else 'queries'}"),
        markup=False,
        soft_wrap=True,
    )


def _given(paths: list[str] | None) -> list[str] | None:
    """Return the paths of a repeatable option, None if it is absent (an empty list in typer)."""
    return paths or None


def _to_json(error: SqlError) -> dict[str, object]:
    place = error.place
    return {
        "line": place.line,
        "column": place.column,
        "query": place.query,
        "error": error.fact,
        "hint": error.hint,
    }


@app.command()
def explain(script: Script, *, allow_path: AllowPath = None, as_json: AsJson = False) -> None:
    """Print the plans of a script's queries without reading data."""
    plans = read_app(script, Scope(AllowedPaths.of(_given(allow_path)), files=False))
    if as_json:
        typer.echo(json.dumps([to_dict(describe_any(plan)) for plan in plans], indent=2))
    else:
        typer.echo("\n\n".join(draw(describe_any(plan)) for plan in plans) or "no queries")


@app.command()
def test(
    scripts: Annotated[
        list[Path], typer.Argument(help="Golden scripts (.cqt).", show_default=False)
    ],
    *,
    complete: Annotated[
        bool,
        typer.Option("--complete", help="Write the actual out and state blocks into the scripts."),
    ] = False,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="name=value; overrides a setting of the scripts; repeatable."),
    ] = None,
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
            raise typer.BadParameter(f"--set takes name=value, not {text!r}")
        settings[name.strip()] = value.strip()
    reports = [run_file(path, complete=complete, settings=settings) for path in scripts]
    failed = [report for report in reports if not report.ok]
    if as_json:
        outcome = [
            {
                "script": report.path,
                "ok": report.ok,
                "failures": [f"line {f.line}: {f.message}" for f in report.failures],
            }
            for report in reports
        ]
        typer.echo(json.dumps(outcome, indent=2))
    else:
        for report in reports:
            typer.echo(printable_lines(report))
        typer.echo(f"{len(reports) - len(failed)} passed, {len(failed)} failed")
    if failed:
        raise typer.Exit(1)


@app.command()
def init(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A new or empty folder.", show_default=False)
    ],
) -> None:
    """Write a small project to start from: a script, sample data, a golden test, a README."""
    for path in write_project(folder):
        typer.echo(printable(path))
    _progress.print("Next:", style="bold")
    where = shlex.quote(str(folder))
    for step in (f"cd {where}", "muntin test unpaid.cqt", "muntin check app.sql"):
        _progress.print(f"  {escape(printable(step))}", soft_wrap=True)
    _progress.print(f"  {escape(RUN_ONCE)}", soft_wrap=True)


def main() -> None:
    """Run the command line.

    Users' mistakes end with exit code 2 and failures with 1, and a message instead of a traceback.
    """
    try:
        app()
    except MuntinError as error:
        for each in error.errors if isinstance(error, InvalidScriptError) else [error]:
            _progress.print(f"[red]error:[/red] {escape(printable(each))}", soft_wrap=True)
        sys.exit(1 if isinstance(error, RunError) else 2)
    except BrokenPipeError:
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
