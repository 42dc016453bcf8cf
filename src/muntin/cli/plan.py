"""``muntin plan``: what a run would do with a checkpoint, before it happens."""

from __future__ import annotations

import json
from pathlib import Path

import typer
from rich.console import Console

from muntin.cli.run import RunOptions, check_options, engine_for
from muntin.cli.scripts import read_text
from muntin.model.printable import printable
from muntin.spark.driver.start_plan import StartPlan

_REFUSED = 2


def plan_app(path: Path, options: RunOptions) -> None:
    """Print what a run would keep, start again, drop or refuse; exit 2 if it would be refused."""
    check_options(path, options)
    if not options.as_json:
        Console(stderr=True, highlight=False).print("[dim]Spark is starting[/dim]")
    engine = engine_for(options)
    engine.execute(read_text(path))
    found = engine.plan_start()
    if options.as_json:
        typer.echo(json.dumps(found.to_dict()))
    else:
        _print(found)
    if found.errors:
        raise typer.Exit(_REFUSED)


def _print(found: StartPlan) -> None:
    for line in found.lines():
        typer.echo(printable(line))
    for error in found.errors:
        typer.echo(printable(f"error: {error}"), err=True)
    verdict = "would be refused" if found.errors else "would succeed; nothing was changed"
    typer.echo(f"The start {verdict}.", err=True)
