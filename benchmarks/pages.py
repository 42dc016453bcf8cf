"""Pages of results, rendered from the JSON of benchmarks: one per question, and the index.

A page has pictures, claims, figures, and then the command and the machine. Its text comes from
``benchmarks/about/NAME.md``: the question as heading, how it is measured, and remarks under
``## How to read it``. Links there are relative to the folder of the pages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.headlines import headlines
from benchmarks.markdown import between, figures, folded, folded_if_long, number, table
from benchmarks.papers import page_table, paper_tables, tally
from benchmarks.pictures import pictures_of
from benchmarks.verdicts import Document, Verdict

_ABOUT = Path(__file__).parent / "about"
_COMMAND = "python -m benchmarks report"
_INTRODUCTION = """One page per question: pictures, claims, figures and the command to repeat them.
Ratios are of one run on one machine; seconds of different pages cannot be compared.

```sh
python -m benchmarks all              # everything, into docs/results; up to two hours
python -m benchmarks all --resume     # continues after an interruption
python -m benchmarks all --quick      # less data, some minutes; its figures mean little
python -m benchmarks join             # one
python -m benchmarks report           # writes these pages again, from the JSON beside them
```"""
_VERDICTS = f"""Every experiment of the papers, with its findings in our words.
A program derives the verdicts from the figures. A finding *{Verdict.HOLDS}* when our figures
show it; it *{Verdict.DIRECTION}* when they show the same order with other numbers, or in at
least three of four cases; otherwise it *{Verdict.FAILS}*. A sentence explains every
verdict that is not the first."""
_FIRST = 4
"""Pictures that stand open at the top of a page; the rest is folded."""


def names() -> list[str]:
    """Return the names of all benchmarks, in the order of the pages."""
    from benchmarks.catalogue import BENCHMARKS  # noqa: PLC0415 (it imports Spark)

    return list(BENCHMARKS)


def question_of(name: str) -> str:
    """Return the question of a benchmark."""
    return _about(name)[0]


def read_documents(folder: Path) -> dict[str, Document]:
    """Return the figures that a folder holds, by benchmark."""
    paths = {name: folder / f"{name}.json" for name in names()}
    return {
        name: json.loads(path.read_text(encoding="utf-8"))
        for name, path in paths.items()
        if path.exists()
    }


def pages_of(documents: Mapping[str, Document]) -> dict[str, str]:
    """Return all pages, by the name of the file."""
    return {
        "README.md": index_page(documents),
        **{f"{name}.md": page_of(name, documents.get(name)) for name in names()},
    }


def write_pages(folder: Path, readme: Path | None = None) -> None:
    """Write all pages of a folder from its JSON, and the headlines into a README.

    The README must have the two comments that mark the place.
    """
    documents = read_documents(folder)
    for name, text in pages_of(documents).items():
        (folder / name).write_text(text, encoding="utf-8")
    if readme is not None and readme.exists():
        readme.write_text(
            with_headlines(readme.read_text(encoding="utf-8"), documents), encoding="utf-8"
        )


def with_headlines(text: str, documents: Mapping[str, Document]) -> str:
    """Return a README with the headlines of these figures."""
    return between(text, "headlines", headlines(documents, "docs/results/"), _COMMAND)


def page_of(name: str, document: Document | None) -> str:
    """Return the page of a benchmark."""
    question, how, reading = _about(name)
    parts = [f"# {question}"]
    if document is None:
        parts.append(f"There are no figures yet. `python -m benchmarks {name}` makes them.")
    elif "error" in document:
        parts.append(
            "**It failed** in the last run, so there are no "
            f"figures:\n\n```text\n{document['error']}\n```"
        )
    else:
        parts += [
            *_warning(document),
            *_pictures(document),
            *_claims(document),
            *_tables(document),
            *_papers(name, document),
        ]
    parts += ["## How it is measured", how, *(["## How to read it", reading] if reading else [])]
    if document and document["rows"]:
        parts += [
            "## Figures",
            folded_if_long(figures(document["rows"]), "All figures", len(document["rows"])),
        ]
    parts += ["## Run it again", _run(name, document), "[All results](README.md)"]
    return "\n\n".join(parts) + "\n"


def _about(name: str) -> tuple[str, str, str]:
    """Return the question, how it is measured, and how to read it."""
    text = (_ABOUT / f"{name}.md").read_text(encoding="utf-8")
    heading, _, body = text.partition("\n")
    how, _, reading = body.partition("\n## How to read it\n")
    return heading.removeprefix("# ").strip(), how.strip(), reading.strip()


def _warning(document: Document) -> list[str]:
    return (
        ["**A quick run: little data, so the figures mean little.**"]
        if document.get("run", {}).get("quick")
        else []
    )


def _pictures(document: Document) -> list[str]:
    plots = document.get("plots") or [plot.to_dict() for plot in pictures_of(document)]
    shown = [f"![{plot['title']}]({plot['file']})" for plot in plots]
    rest = shown[_FIRST:]
    return shown[:_FIRST] + (
        [folded(f"{len(rest)} more pictures", "\n\n".join(rest))] if rest else []
    )


def _claims(document: Document) -> list[str]:
    if not document["claims"]:
        return []
    rows = [
        [
            claim["claim"],
            number(claim["measured"]),
            f"{claim.get('side', 'at most')} {number(claim['bound'])}",
            _kept(claim),
        ]
        for claim in document["claims"]
    ]
    return ["## What it shows", table(["claim", "measured", "bound", ""], rows, [1])]


def _tables(document: Document) -> list[str]:
    return [
        part
        for title, rows in document.get("tables", {}).items()
        for part in (f"### {title}", figures(rows))
    ]


def _papers(name: str, document: Document) -> list[str]:
    found = page_table(name, {name: document})
    return ["## Beside the paper", found] if found else []


def _kept(claim: Mapping[str, Any]) -> str:
    return "kept" if claim["holds"] else "**not kept**"


def _run(name: str, document: Document | None) -> str:
    command = f"```sh\npython -m benchmarks {name}\n```"
    if document is None:
        return command
    run = document.get("run", {})
    when = ", ".join(
        [
            *([run["date"] + " UTC"] if run.get("date") else []),
            *([f"commit {run['commit']}"] if run.get("commit") else []),
            *([f"{number(run['minutes'])} minutes"] if run else []),
        ]
    )
    machine = ", ".join(f"{key} {value}" for key, value in document["machine"].items())
    return (
        f"{command}\n\n{when + '; ' if when else ''}{machine}. All figures: "
        f"[{name}.json]({name}.json)."
    )


def index_page(documents: Mapping[str, Document]) -> str:
    """Return the page that leads to the others."""
    parts = [
        "# Results",
        _INTRODUCTION,
        *_several(documents),
        "## In short",
        headlines(documents),
        "## Questions",
        _questions(documents),
        "## The papers",
        f"{_VERDICTS} {tally(documents)}",
        paper_tables(documents, names()),
    ]
    return "\n\n".join(parts) + "\n"


def _several(documents: Mapping[str, Document]) -> list[str]:
    """Return a remark if the figures come from several commits or from unknown ones."""
    commits = {document.get("run", {}).get("commit", "") for document in documents.values()}
    if len(commits) == 1 and "" not in commits:
        total = sum(document["run"]["minutes"] for document in documents.values())
        return [f"All figures are of commit {commits.pop()}, measured in {total:,.0f} minutes."]
    return (
        [
            (
                "The figures are not of one run: each page has its own commit and date, where "
                "they "
                "are known."
            )
        ]
        if documents
        else []
    )


def _questions(documents: Mapping[str, Document]) -> str:
    rows = [
        [f"[{name}]({name}.md)", question_of(name), *_state(documents.get(name))]
        for name in names()
    ]
    return table(["benchmark", "question", "claims kept", "minutes"], rows, [2, 3])


def _state(document: Document | None) -> tuple[str, str]:
    if document is None:
        return "no figures yet", ""
    if "error" in document:
        return "**failed**", ""
    kept = sum(claim["holds"] for claim in document["claims"])
    minutes = document.get("run", {}).get("minutes")
    return f"{kept} of {len(document['claims'])}", "" if minutes is None else number(minutes)
