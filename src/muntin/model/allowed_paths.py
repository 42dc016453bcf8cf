"""The folders that scripts are confined to.

A path is checked after links and ``..`` are resolved, and the caller continues with the resolved
path, so a link that is swapped later changes nothing.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from muntin.errors import InputError, SettingError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_FILE = re.compile(r"file:(?://(?:localhost)?)?(?=/)", re.IGNORECASE)
_SIGNS = re.compile(r"[*?\[{\\]")
"""Characters that Spark reads as part of a pattern."""
_HINT = "Use a path below an allowed folder, or allow its folder with allowed_paths (--allow-path)"


def local_path(path: str) -> str | None:
    """Return the path of a file on this machine, None for a URL of another scheme.

    >>> local_path("data/a"), local_path("file:///data/a"), local_path("file:/data/a")
    ('data/a', '/data/a', '/data/a')
    >>> local_path("s3a://bucket/a") is None
    True
    """
    path = _FILE.sub("", path, count=1) if _FILE.match(path) else path
    return None if _SCHEME.match(path) else path


def folder_identity(path: str) -> str:
    """Return a text that is equal for names of one folder: links resolved, or a URL.

    >>> folder_identity("s3a://bucket/out/"), folder_identity("file:///data/x/../out")
    ('s3a://bucket/out', '/data/out')
    """
    local = local_path(path)
    return path.rstrip("/") if local is None else os.path.realpath(local)


@dataclass(frozen=True)
class AllowedPaths:
    """Local folders with their links resolved, and URLs as prefixes that end with a slash."""

    folders: tuple[str, ...]
    urls: tuple[str, ...]

    @classmethod
    def of(cls, paths: object) -> AllowedPaths | None:
        """Return the paths that a user gave, one or several; None means no confinement."""
        if paths is None:
            return None
        given = [paths] if isinstance(paths, str | Path) else paths
        if not isinstance(given, list | tuple) or not all(
            isinstance(path, str | Path) and str(path) for path in given
        ):
            raise SettingError(
                f"allowed_paths cannot be {paths!r}",
                hint="Give a list of folders, such as ['data', 'out']",
            )
        texts = [str(path) for path in given]
        local = [local_path(text) for text in texts]
        folders = tuple(os.path.realpath(path) for path in local if path is not None)
        return cls(
            folders,
            tuple(
                f"{text.rstrip('/')}/"
                for text, path in zip(texts, local, strict=True)
                if path is None
            ),
        )

    def resolved(self, path: str, *, patterns: bool = False) -> str:
        """Return a path without links and ``..``.

        Raises InputError unless the path is below an allowed folder. ``patterns`` says whether the
        reader expands ``*``, ``?``, brackets and braces, as Spark does.
        """
        local = local_path(path)
        if local is None:
            return self._checked_url(path)
        fixed, pattern = _cut_pattern(local) if patterns else (local, "")
        real = self._checked(fixed or ".", path)
        if patterns and (_SIGNS.search(real) or "\\" in pattern or _leads_up(pattern)):
            raise InputError(
                f"the path {path!r} could lead out of the allowed folders",
                hint="Leave out '..' and '\\' in patterns, and '/' in their braces",
            )
        self._check_links(real, path)
        return f"{real.rstrip('/')}/{pattern}" if pattern else real

    def _checked(self, path: str, given: str) -> str:
        """Return the resolved path, if it is allowed; ``given`` is the user's text."""
        real = os.path.realpath(path)
        if not any(
            real == folder or real.startswith(folder.rstrip("/") + "/") for folder in self.folders
        ):
            raise InputError(f"the path {given!r} is outside the allowed folders", hint=_HINT)
        return real

    def _check_links(self, path: str, given: str) -> None:
        """Raise unless all links below a folder stay inside, because readers follow them."""
        for folder, folders, files in os.walk(path):
            inside = (os.path.join(folder, name) for name in (*folders, *files))  # noqa: PTH118
            for link in filter(os.path.islink, inside):
                self._checked(link, f"{given} with its link {link}")

    def open(self, file: Path) -> BinaryIO:
        """Open a file for reading, and check the opened file rather than its name."""
        opened = file.open("rb")
        try:
            named = os.stat(self.resolved(str(file)))  # noqa: PTH116 (compared with fstat)
            same = os.path.samestat(os.fstat(opened.fileno()), named)
        except BaseException:
            opened.close()
            raise
        if not same:
            opened.close()
            raise InputError(
                f"the path {str(file)!r} changed while it was opened", hint="Try again"
            )
        return opened

    def _checked_url(self, path: str) -> str:
        sneaky = "\\" in path or _leads_up(path) or "%2e" in path.lower()
        if sneaky or not any(f"{path}/".startswith(prefix) for prefix in self.urls):
            raise InputError(f"the path {path!r} is outside the allowed folders", hint=_HINT)
        return path


def _leads_up(path: str) -> bool:
    return ".." in re.split(r"[/{},]", path) or re.search(r"\{[^}]*/", path) is not None


def _cut_pattern(path: str) -> tuple[str, str]:
    """Split a path before the first component that holds a pattern."""
    sign = _SIGNS.search(path)
    if sign is None:
        return path, ""
    cut = path.rfind("/", 0, sign.start()) + 1
    return path[:cut], path[cut:]
