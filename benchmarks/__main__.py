"""Run benchmarks from the command line: ``python -m benchmarks NAME``."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table as TextTable

from benchmarks.catalogue import BENCHMARKS, Benchmark
from benchmarks.pages import read_documents, write_pages
from benchmarks.peers_bench import bench_peers
from benchmarks.pictures import pictures_of
from benchmarks.plots import PlotError, draw
from benchmarks.report import Report
from benchmarks.run import Run
from benchmarks.run_all import MARK, RunRequest, Tell, run_all
from muntin.errors import MuntinError

RESULTS = Path("docs") / "results"
QUICK_RESULTS = Path("bench-results")
_README = Path("README.md")
_REMARK = "remark"
"""A column of sentences, which stand below the table."""
_progress = Console(stderr=True, highlight=False)
_results = Console(highlight=False, soft_wrap=True)


def bench(  # noqa: PLR0913 (typer takes options as parameters)
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help=f"any of {', '.join(BENCHMARKS)}; all; or report: only the pages",
            show_default=False,
        ),
    ],
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            help=f"folder for JSON, plots and pages; default: {RESULTS}, or none with --quick",
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="less data, to see that it works; its figures mean little"),
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="keep what the folder has of the same commit")
    ] = False,
    environments: Annotated[
        Path | None,
        typer.Option(
            "--environments",
            help="for peers: where other systems are installed; by default in the user's cache",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON for machines")] = False,
    worker: Annotated[bool, typer.Option("--worker", hidden=True)] = False,
) -> None:
    """Run benchmarks, print tables, and write JSON, plots and pages.

    Exit with 1 when a benchmark fails or a claim does not hold.
    """
    unknown = [name for name in names if name not in BENCHMARKS and name not in {"all", "report"}]
    if unknown:
        raise typer.BadParameter(
            f"there is no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}"
        )
    readme = _README if output is None else None
    if names == ["report"]:
        write_report(output or RESULTS, readme)
    elif len(names) > 1 or "all" in names or resume:
        chosen = [name for name in BENCHMARKS if name in names or "all" in names]
        options = [
            *(["--json"] if as_json else []),
            *(["--environments", str(environments)] if environments else []),
        ]
        _run_many(
            RunRequest(
                chosen,
                output or (QUICK_RESULTS if quick else RESULTS),
                quick,
                resume,
                options,
                None if quick else readme,
            )
        )
    else:
        folder = output or (None if quick else RESULTS)
        report, run = _run_one(
            names[0], quick=quick, environments=environments, mark=MARK if worker else ""
        )
        if as_json:
            typer.echo(report.to_json(run))
        else:
            _show(report)
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{report.name}.json").write_text(
                report.to_json(run) + "\n", encoding="utf-8"
            )
            _draw(json.loads(report.to_json()), folder)
            if not worker:
                write_pages(folder, readme)
        if not quick and not all(claim.holds for claim in report.claims):
            raise typer.Exit(1)


def write_report(folder: Path, readme: Path | None) -> None:
    """Write plots and pages again, from the JSON of a folder."""
    for document in read_documents(folder).values():
        _draw(document, folder)
    write_pages(folder, readme)
    _progress.print(f"pages written to {folder}")


def _run_one(name: str, *, quick: bool, environments: Path | None, mark: str) -> tuple[Report, Run]:
    run: Benchmark = BENCHMARKS[name]
    if environments is not None and name == "peers":
        run = partial(bench_peers, environments=environments)
    began = time.monotonic()
    report = run(
        lambda text: _progress.print(f"[dim]{escape(mark + text)}[/dim]", soft_wrap=bool(mark)),
        quick=quick,
    )
    return report, Run.ending_now(time.monotonic() - began, quick=quick)


def _run_many(request: RunRequest) -> None:
    with _telling() as tell:
        failed = run_all(request, tell)
    _progress.print(
        f"{len(request.names) - len(failed)} of {len(request.names)} are well; "
        f"pages in {request.folder}"
    )
    if failed:
        _progress.print(f"[red]failed, or with claims that do not hold:[/red] {', '.join(failed)}")
        raise typer.Exit(1)


@contextmanager
def _telling() -> Iterator[Tell]:
    """Progress: one line that changes on a terminal, elsewhere a line a message."""
    if not _progress.is_terminal:
        yield lambda text: _progress.print(escape(text), soft_wrap=True)
        return
    with _progress.status("") as status:
        yield lambda text: status.update(escape(text))


def _draw(document: Mapping[str, Any], folder: Path) -> None:
    """Draw the pictures of a report.

    A failure to draw is reported and leaves the figures intact.
    """
    for plot in pictures_of(document):
        try:
            draw(plot, folder)
        except PlotError as error:
            _progress.print(f"[yellow]{escape(str(error))}[/yellow]", soft_wrap=True)


def _show(report: Report) -> None:
    table = TextTable(title=report.question, title_justify="left")
    columns = [column for column in report.rows[0] if column != _REMARK]
    for column in columns:
        table.add_column(
            column, justify="left" if isinstance(report.rows[0][column], str) else "right"
        )
    for row in report.rows:
        table.add_row(
            *(
                f"{value:,}" if isinstance(value, int | float) else escape(value)
                for value in (row[column] for column in columns)
            )
        )
    _results.print(table)
    for row in report.rows:
        if row.get(_REMARK):
            _results.print(
                escape(f"{', '.join(str(row[column]) for column in columns[:2])}: {row[_REMARK]}")
            )
    for claim in report.claims:
        _results.print(
            f"{'holds' if claim.holds else 'DOES NOT HOLD'}: {claim.text}: {claim.measured:,} "
            f"({claim.side} {claim.bound:,})"
        )


def main() -> None:
    """Run the command line; end with exit code 2 if the input is wrong and 130 if interrupted."""
    app = typer.Typer(add_completion=False)
    app.command()(bench)
    try:
        app(prog_name="python -m benchmarks")
    except MuntinError as error:
        _progress.print(f"[red]error:[/red] {escape(str(error))}", soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
