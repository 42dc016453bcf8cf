"""The documentation is executed: its programs, SQL and scripts do what the pages show.

The first words behind a fence state what is done with a block:

=====================  =============================================================================
``python``             run; the blocks of a page share one namespace and one empty folder
``text output``        what the Python block before it printed
``sql``                a script: parsed, bound and planned
``sql query``          a query over the declarations of the last script: bound and planned
``sql refused``        the same, but it must be refused
``cqt``                a golden script: run
``console run``        lines that begin with ``$`` are run, their output follows
... ``file=NAME``      written to the page's folder first; not run unless a command names it
... ``fragment``       nothing
... ``spark``          the same as without it, but in tests/spark/test_documentation.py
=====================  =============================================================================
"""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.pages import pages_of, question_of, read_documents, with_headlines
from muntin.cli import main
from muntin.cli.scripts import read_app
from muntin.errors import SettingError, SqlError
from muntin.model.settings import DECLARATIONS, Settings
from muntin.testing.golden import read_script
from muntin.testing.runner import run_script

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
GUIDES = [page for page in PAGES if ROOT / "examples" not in page.parents]
BIBLIOGRAPHY = ROOT / "docs" / "bibliography.md"
WRITTEN = [page for page in PAGES if page.parent.name != "results"]
"""Pages that are not generated from measurements."""
FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the words behind it, its text and the line it begins on."""

    language: str
    marks: tuple[str, ...]
    text: str
    line: int

    @property
    def file(self) -> str | None:
        return next(
            (mark.removeprefix("file=") for mark in self.marks if mark.startswith("file=")), None
        )

    def runs(self, language: str, *marks: str) -> bool:
        return self.language == language and self.marks == marks


def blocks_of(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        language, *marks = match.group(1).split() or [""]
        yield Block(language, tuple(marks), match.group(2), text.count("\n", 0, match.start()) + 1)


def prose_of(page: Path) -> str:
    """Return the page without code."""
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text(encoding="utf-8")))


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def pages_with(*languages: str) -> list[Path]:
    return [
        page
        for page in GUIDES
        if any(
            block.language in languages and not {"fragment", "spark"} & {*block.marks}
            for block in blocks_of(page)
        )
    ]


@pytest.mark.parametrize("page", pages_with("python", "console"), ids=name_of)
def test_programs_and_commands_print_the_output_on_the_page(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    for block in blocks_of(page):
        where = f"{name_of(page)}:{block.line}"
        if block.file:
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")
        elif block.runs("python"):
            exec(compile("\n" * block.line + block.text, name_of(page), "exec"), namespace)
            printed = capsys.readouterr().out
        elif block.runs("text", "output"):
            assert lines_of(printed) == lines_of(block.text), where
        elif block.runs("console", "run"):
            for command, expected in commands_of(block.text):
                _run(command, monkeypatch)
                output = capsys.readouterr()
                assert lines_of(output.err + output.out) == lines_of(expected), (
                    f"{where}: {command}"
                )


def commands_of(text: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


def _run(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run ``muntin ...`` or ``python FILE`` in this process, which saves starting another."""
    program, *arguments = shlex.split(command)
    with monkeypatch.context() as patch, suppress(SystemExit):
        if program == "python":
            runpy.run_path(arguments[0], run_name="__main__")
        else:
            assert program == "muntin", "other commands are not run"
            patch.setattr(sys, "argv", ["muntin", *arguments])
            main()


def lines_of(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


@pytest.mark.parametrize("page", pages_with("sql"), ids=name_of)
def test_sql_blocks_are_bound_and_planned(page: Path, tmp_path: Path) -> None:
    declared = ""
    for block in blocks_of(page):
        if block.language != "sql" or "fragment" in block.marks:
            continue
        script = tmp_path / "script.sql"
        if block.marks in {("query",), ("refused",)}:
            named = (
                f"CREATE QUERY its_name AS {block.text}"
                if block.text.lstrip().upper().startswith(("SELECT", "WITH"))
                else block.text
            )
            script.write_text(f"{declared};\n{named}", encoding="utf-8")
        else:
            declared = block.text.rstrip().rstrip(";")
            script.write_text(declared, encoding="utf-8")
        where = f"{name_of(page)}:{block.line}"
        if "refused" in block.marks:
            with pytest.raises(SqlError):
                read_app(script)
        else:
            assert read_app(script) or "CREATE QUERY" not in script.read_text(encoding="utf-8"), (
                where
            )


@pytest.mark.parametrize("page", pages_with("cqt"), ids=name_of)
def test_golden_scripts_pass(page: Path) -> None:
    for block in blocks_of(page):
        if block.language == "cqt" and "fragment" not in block.marks:
            report = run_script(read_script(block.text, f"{name_of(page)}:{block.line}"))
            assert report.ok, str(report)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose_of(page)):
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        assert path.exists(), f"{name_of(page)}: {target}"
        if anchor:
            assert anchor in _anchors(path), f"{name_of(page)}: {target}"


def _anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(
        r"^#+ (.*)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE
    )
    return {
        re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings
    }


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_pages_name_no_machine_and_no_host(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    # Checkpoints may be URLs; those of the docs name placeholders.
    placeholder = r"\b(?:s3a|gs|abfss|hdfs)://(?=`|\.\.\.|bucket/|container@account\.|namenode:)"
    assert "://" not in re.sub(placeholder, "", text)
    assert not re.search(r"(?<![\w.])/(?:work|home|root|Users)/", text)


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_prose_has_lines_of_at_most_100_columns(page: Path) -> None:
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    lines = [line for line in prose.splitlines() if not line.startswith(("|", "![", "<!--"))]
    assert not [line for line in lines if len(line) > 100]


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_papers_are_cited_by_keys_of_the_bibliography(page: Path) -> None:
    known = re.findall(r"^\| \[(\w+)\] \|", BIBLIOGRAPHY.read_text(encoding="utf-8"), re.MULTILINE)
    prose = prose_of(page)
    assert {*re.findall(r"\[([A-Z][a-z]+(?:TR|\d\d))[\],]", prose)} <= {*known}
    assert not re.search(r"\bpapers? \d", prose, re.IGNORECASE)


def test_every_page_is_reached_from_the_index() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "docs" / "index.md"]
    while waiting:
        page = waiting.pop()
        if page not in seen and page.suffix == ".md" and page.exists():
            seen.add(page)
            waiting += [
                (page.parent / target.partition("#")[0]).resolve()
                for target in re.findall(r"\]\(([^)\s]+)\)", prose_of(page))
            ]
    assert not {name_of(page) for page in (ROOT / "docs").rglob("*.md") if page not in seen}


def test_the_reference_of_settings_is_that_of_the_code() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "settings_table.py"))
    text = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    assert script["put"](text) == text, "run python scripts/settings_table.py"


@pytest.mark.parametrize("setting", DECLARATIONS)
def test_every_setting_is_explained_with_all_its_values(setting: str) -> None:
    text = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    section = re.search(rf"^## {setting}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section, f"there is no section {setting}"
    try:
        Settings().having(setting, "no such value")
    except SettingError as error:
        if error.hint.startswith("It is one of "):
            for value in error.hint.removeprefix("It is one of ").split(", "):
                assert f"`{value}`" in section.group(1), f"{setting} does not explain {value}"


def test_results_are_those_that_were_measured() -> None:
    folder = ROOT / "docs" / "results"
    documents = read_documents(folder)
    assert {path.stem for path in folder.glob("*.json")} == {*documents}
    pages = pages_of(documents)
    assert {path.name for path in folder.glob("*.md")} == {*pages}
    for name, text in pages.items():
        assert (folder / name).read_text(encoding="utf-8") == text, (
            f"{name}: run python -m benchmarks report"
        )
    assert {path.name for path in folder.glob("*.svg")} == {
        *re.findall(r"\]\(([\w-]+\.svg)\)", "".join(pages.values()))
    }
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "<!-- headlines: begin" in readme
    assert with_headlines(readme, documents) == readme, "run python -m benchmarks report"


def test_every_benchmark_asks_the_question_of_its_page() -> None:
    for name, document in read_documents(ROOT / "docs" / "results").items():
        assert document["question"] == question_of(name)
