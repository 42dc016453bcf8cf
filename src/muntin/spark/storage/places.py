"""Find the place of a checkpoint that a user names, and open the storage of a place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from muntin.errors import InputError
from muntin.spark.storage.file_systems import check_supported, settings_of
from muntin.spark.storage.interface import Location, Storage
from muntin.spark.storage.local import LocalStorage
from muntin.spark.storage.object_store import ObjectStorage

_PATTERN = "*?[]{}\\"


def storage_at(place: Location) -> Storage:
    """Return the storage of a place."""
    if "://" in place.url:
        return ObjectStorage(place)
    return LocalStorage(Path(place.url))


def checkpoint_place(
    given: str | Path, read: Callable[[Iterable[str]], dict[str, str]]
) -> Location:
    """Return the place of a checkpoint: a local path, or a URL that Hadoop and Arrow understand.

    ``read`` returns the values of settings of Hadoop by name, as far as they are set.

    Raises
    ------
    InputError
        When it cannot be used as a checkpoint.
    """
    text = str(given)
    if text.startswith("file:"):
        path = text.removeprefix("file:")
        text = "/" + path.lstrip("/") if path.startswith("/") else path
    if any(sign in text for sign in _PATTERN):
        raise InputError(
            f"the checkpoint {given} has characters in its name that Spark takes for a pattern",
            hint="Leave out * ? [ ] { } and \\",
        )
    if "://" not in text:
        return Location(str(Path(text).absolute()))
    check_supported(text)
    url = text.rstrip("/")
    return Location(url, tuple(sorted(read(settings_of(url)).items())))
