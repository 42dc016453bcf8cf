"""The container of everything that Muntin stores in a checkpoint: a JSON header, blobs, a checksum.

Layout, little-endian::

    magic (8)  version (4)  header length (4)  total length (8)  CRC-32 (4)  zeros (4)
    header: JSON, {"kind": ..., "value": ..., "blobs": [length, ...]}
    blobs, each padded with zeros to a multiple of eight bytes

The checksum covers everything but itself, so a single changed byte or a missing tail is always
detected. Later versions keep the first line, so that an older Muntin can distinguish them from
damaged files. Reading a frame never runs code: there is no pickle in it, and
:mod:`muntin.runtime.codec` builds only the requested types.
"""

from __future__ import annotations

import json
import os
import secrets
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import accumulate
from pathlib import Path
from typing import IO, Any, TypeAlias

from muntin.errors import MuntinError

MAGIC = b"\x93MUNTIN\n"
VERSION = 6
"""The format of checkpoints. Formats 1 and 2, of Muntin 0.1, were pickled and have no magic;
format 3 used other names for the fields of a deployment; format 4 kept partition batches in Spark's
state store."""

_PREFIX = struct.Struct("<8sIIQII")
PREFIX = _PREFIX.size
_SUM_AT = 24
_ALIGN = 8
_PICKLE = 0x80
_TRIES = 10
_RESTORE = "Restore the checkpoint folder from a copy, or start with a new checkpoint"

Buffer: TypeAlias = bytes | memoryview


class CheckpointError(MuntinError):
    """A checkpoint that cannot be used with this deployment; nothing in it was changed."""


def pack(kind: str, value: object, blobs: Sequence[Buffer] = ()) -> bytes:
    """Return a frame of a JSON value and its blobs."""
    lengths = [len(blob) for blob in blobs]
    header = json.dumps(
        {"kind": kind, "value": value, "blobs": lengths}, separators=(",", ":")
    ).encode()
    pieces: list[Buffer] = [header, _padding(len(header))]
    for blob, length in zip(blobs, lengths, strict=True):
        pieces += [blob, _padding(length)]
    total = PREFIX + sum(map(len, pieces))
    start = _PREFIX.pack(MAGIC, VERSION, len(header), total, 0, 0)
    checksum = _checksum([start, *pieces])
    return b"".join(
        [start[:_SUM_AT], checksum.to_bytes(4, "little"), start[_SUM_AT + 4 :], *pieces]
    )


def unpack(content: Buffer, kind: str, where: str) -> tuple[Any, list[memoryview]]:
    """Return the JSON value and the blobs of a frame.

    Parameters
    ----------
    content : bytes or memoryview
        The frame.
    kind : str
        The expected kind.
    where : str
        A name of the frame for errors, for example the path of its file.

    Raises
    ------
    CheckpointError
        When the content is damaged, of another kind or version, or no frame at all.
    """
    view = memoryview(content)
    length = _check(view, where)
    try:
        header = json.loads(bytes(view[PREFIX : PREFIX + length]))
        found, value, sizes = header["kind"], header["value"], header["blobs"]
        ends = list(accumulate(map(_aligned, sizes), initial=_aligned(PREFIX + length)))
        blobs = [
            view[end - _aligned(size) :][:size] for size, end in zip(sizes, ends[1:], strict=True)
        ]
    except (ValueError, TypeError, KeyError, RecursionError) as error:  # a CRC stops no forger
        raise damaged(where) from error
    if found != kind:
        raise CheckpointError(f"{where} holds a {found}, not a {kind}", hint=_RESTORE)
    return value, blobs


def length_of(start: Buffer) -> int:
    """Return the length of a frame, given its first :data:`PREFIX` bytes; 0 if it is damaged."""
    if len(start) < PREFIX:
        return 0
    _, _, _, total, _, _ = _PREFIX.unpack_from(start)
    return int(total)


def _check(view: memoryview, where: str) -> int:
    """Check everything outside the header and return the length of the header."""
    if bytes(view[:8]) != MAGIC:
        raise _foreign(view, where)
    if len(view) < PREFIX:
        raise damaged(where)
    _, version, length, total, checksum, _ = _PREFIX.unpack_from(view)
    start = b"".join([view[:_SUM_AT], bytes(4), view[_SUM_AT + 4 : PREFIX]])
    if total != len(view) or _checksum([start, view[PREFIX:]]) != checksum:
        raise damaged(where)
    if version != VERSION:
        raise CheckpointError(
            f"{where} has format {version}, and this version of Muntin reads format {VERSION}",
            hint="Use the version of Muntin that wrote it, or start with a new checkpoint",
        )
    return int(length)


def _foreign(view: memoryview, where: str) -> CheckpointError:
    """Return the error for content without our magic: written by Muntin 0.1, or damaged."""
    # A pickle starts with its protocol; the state store of Muntin 0.1 put a checksum before it.
    if any(len(view) > at + 1 and view[at] == _PICKLE and view[at + 1] <= 5 for at in (0, 4)):
        return CheckpointError(
            f"{where} was written by Muntin 0.1, in a format that is no longer read "
            "because reading it could run code",
            hint="Start with a new checkpoint, or finish this run with Muntin 0.1",
        )
    return damaged(where)


def damaged(where: str) -> CheckpointError:
    """Return the error for content that differs from what was written."""
    return CheckpointError(f"{where} is damaged", hint=_RESTORE)


def missing(where: str) -> CheckpointError:
    """Return the error for a file that is not there."""
    return CheckpointError(f"{where} is missing", hint=_RESTORE)


def unreadable(where: str, error: OSError) -> CheckpointError:
    """Return the error for a file that cannot be read."""
    return CheckpointError(f"{where} cannot be read: {error.strerror}", hint=_RESTORE)


def _checksum(pieces: Sequence[Buffer]) -> int:
    checksum = 0
    for piece in pieces:
        checksum = zlib.crc32(piece, checksum)
    return checksum


def _aligned(place: int) -> int:
    return -(-place // _ALIGN) * _ALIGN


def _padding(length: int) -> bytes:
    return bytes(_aligned(length) - length)


# -- files -----------------------------------------------------------------------------------


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn a failed write into an error that names the checkpoint folder."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"the checkpoint {folder} cannot be written to: {error.strerror}",
            hint="Give a folder that this process may write to, with room on its disk; "
            "then start again",
        ) from error


def write_file(path: Path, content: Buffer, *, durable: bool = True) -> None:
    """Replace a file atomically: readers see the old or the new content.

    If it is ``durable``, that holds even after a power failure. No other writer uses the same
    temporary name, so the content is always that of one of them.
    """
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        with _created(part, durable=durable) as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    if durable:
        sync(path.parent)


def _created(path: Path, *, durable: bool) -> IO[bytes]:
    """Create a file and its folder, which another process may remove while it is empty."""
    for _ in range(_TRIES):
        with suppress(FileNotFoundError):
            make_folder(path.parent, durable=durable)
            return path.open("wb")
    return path.open("wb")


def make_folder(folder: Path, *, durable: bool = True) -> None:
    """Create a folder and those above it; if ``durable``, so that it survives a power failure."""
    try:
        folder.mkdir()
    except FileNotFoundError:
        make_folder(folder.parent, durable=durable)
        make_folder(folder, durable=durable)
        return
    except OSError:
        if folder.is_dir():
            return
        raise
    if durable:
        sync(folder.parent)


def sync(path: Path) -> None:
    """Synchronize a file, or the names in a folder, with the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
