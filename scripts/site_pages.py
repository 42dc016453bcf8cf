"""Prepare the project's pages for the documentation site (an MkDocs hook, see mkdocs.yml).

The README, the changelog and the READMEs of the examples live outside ``docs``, where people who
browse the repository look for them. Here they become pages of the site, with their links adjusted.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_ROOT = Path(__file__).parents[1]
_DOCS = "docs"
_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")
_FENCE = re.compile(r"^(```\w+)[^\n`]+$", re.MULTILINE)


_EXAMPLE_FILES = {".md", ".sql", ".py", ".cqt"}


def _files_outside_docs() -> dict[str, str]:
    """Map paths in the repository to paths in the site."""
    files = {"README.md": "readme.md", "CHANGELOG.md": "changelog.md", "LICENSE": "LICENSE"}
    files["CONTRIBUTING.md"] = "contributing.md"
    for path in sorted((_ROOT / "examples").rglob("*")):
        if path.suffix in _EXAMPLE_FILES:
            name = path.relative_to(_ROOT).as_posix()
            files[name] = name
    return files


_OUTSIDE = _files_outside_docs()
_SOURCES = {site: source for source, site in _OUTSIDE.items()}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files that live outside docs."""
    for source, site in _OUTSIDE.items():
        text = (_ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, site, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Point links at the files of the site, and drop the marks behind code fences."""
    source = _SOURCES.get(page.file.src_uri, f"{_DOCS}/{page.file.src_uri}")
    base = posixpath.dirname(page.file.src_uri)

    def follow(match: re.Match[str]) -> str:
        target = match[2]
        if "://" in target:
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        site = _OUTSIDE.get(path) or path.removeprefix(f"{_DOCS}/")
        return f"{match[1]}{posixpath.relpath(site, base or '.')}{match[3]}"

    return _FENCE.sub(r"\1", _LINK.sub(follow, markdown))
