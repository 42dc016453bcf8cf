"""The deployment as a file in the checkpoint, which every task reads before it works on a batch.

Invariant: the driver replaces the file before Spark commits the batch that brought a change, so all
tasks of the next batch find it. A task on a file system that shows old content is detected by the
epoch that travels with the rows. The file is named ``program`` in every format of checkpoints, so
that an old checkpoint is found and refused by its format.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from muntin.spark.exchange.codec import decode, encode
from muntin.spark.exchange.deployment import Deployment
from muntin.spark.exchange.frames import PREFIX, read_file

_KIND = "deployment"
_MOST_LOADED = 8
"""Deployments that a process caches; one Spark worker serves several engines in turn."""


@dataclass(frozen=True)
class StoredDeployment:
    """A deployment and the name of its run, as they are stored."""

    run: str
    deployment: Deployment


@dataclass(frozen=True, eq=False)
class LoadedDeployment:
    """A deployment as bytes and as an object."""

    content: bytes
    deployment: Deployment


@dataclass(frozen=True)
class DeploymentFile:
    """The file of a deployment and the folders beside it, as tasks see them."""

    path: str

    def read(self) -> LoadedDeployment:
        """Return the current deployment; it is decoded again only when the file has changed."""
        # Opened every time, because network file systems check for newer content then.
        with open(self.path, "rb") as file:  # noqa: PTH123 (workers call this for every batch)
            start = file.read(PREFIX)
            known = _loaded.get(self.path)
            if known is None or known.content[:PREFIX] != start:
                content = start + file.read()
                known = LoadedDeployment(content, decode_deployment(content, self.path))
                _loaded.pop(self.path, None)
                _loaded[self.path] = known
                while len(_loaded) > _MOST_LOADED:
                    del _loaded[next(iter(_loaded))]
        return known

    @property
    def folder(self) -> Path:
        """The folder that holds it."""
        return Path(self.path).parent

    @property
    def carried(self) -> Path:
        """The folder of rows that are set aside for new dataflows."""
        return self.folder / "carried"

    @property
    def subscribed(self) -> Path:
        """The file with the names of the queries that have subscribers, while there are any."""
        return self.folder / "subscribed"

    @property
    def spool(self) -> Path:
        """The folder in which partitions leave outputs for the driver."""
        return self.folder / "spool"

    def subscribed_queries(self) -> frozenset[str]:
        """Return the names of the queries that have subscribers now."""
        try:
            return frozenset(json.loads(self.subscribed.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return frozenset()


_loaded: dict[str, LoadedDeployment] = {}
"""The newest version of each file read by this process; the first bytes identify a version, because
they contain its checksum."""


def encode_deployment(run: str, deployment: Deployment) -> bytes:
    """Return the content of the file of a run's deployment."""
    return encode(StoredDeployment(run, deployment), _KIND)


def decode_deployment(content: bytes, where: str = "the deployment of the engine") -> Deployment:
    """Return the deployment in the content of its file."""
    return decode(content, _KIND, StoredDeployment, where).deployment


def read_stored(path: Path) -> StoredDeployment | None:
    """Return the run and the deployment in a file; None if there is no file."""
    if not path.exists():
        return None
    return decode(read_file(path), _KIND, StoredDeployment, str(path))
