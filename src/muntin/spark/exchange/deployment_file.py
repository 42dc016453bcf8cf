"""The deployment as a file in the checkpoint, which every task reads before it works on a batch.

Invariant: the driver replaces the file before the manifest that completes the batch that brought a
change, so all tasks of the next batch find it. A task on a file system that shows old content is
detected by the epoch that travels with the rows. The file is named ``program`` in every format of
checkpoints, so that an old checkpoint is found and refused by its format.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from muntin.runtime.codec import decode, encode
from muntin.runtime.frames import PREFIX, Buffer, missing
from muntin.spark.exchange.deployment import Deployment
from muntin.spark.exchange.shipped_functions import NO_FUNCTIONS, ShippedFunctions
from muntin.spark.storage import Storage
from muntin.spark.storage.fence import versioned

_KIND = "deployment"
PROGRAM = "program"
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
    """The file of a deployment and the folders beside it, as tasks see them.

    ``token`` is that of the driver, which is part of the names of files that it replaces. Queries
    cannot be bound without the ``functions`` that they call.
    """

    storage: Storage
    token: str = ""
    functions: ShippedFunctions = NO_FUNCTIONS

    def read(self) -> LoadedDeployment:
        """Return the current deployment; it is read completely only when the file has changed."""
        self.functions.load()
        name = versioned(PROGRAM, self.token)
        where = self.storage.where(name)
        start = self.storage.start_of(name, PREFIX)
        if start is None:
            raise missing(where)
        known = _loaded.get(where)
        if known is None or known.content[:PREFIX] != start:
            content = bytes(self.storage.get(name))
            known = LoadedDeployment(content, decode_deployment(content, where))
            _loaded.pop(where, None)
            _loaded[where] = known
            while len(_loaded) > _MOST_LOADED:
                del _loaded[next(iter(_loaded))]
        return known

    @property
    def carried(self) -> Storage:
        """Return the rows that are set aside for new dataflows."""
        return self.storage.below("carried")

    @property
    def spool(self) -> Storage:
        """Return the outputs that partitions leave for the driver."""
        return self.storage.below("spool")

    @property
    def _subscribed(self) -> str:
        """Return the file with the names of the queries that have subscribers, if any."""
        return versioned("subscribed", self.token)

    def subscribed_queries(self) -> frozenset[str]:
        """Return the names of the queries that have subscribers now."""
        content = self.storage.find(self._subscribed)
        return frozenset() if content is None else frozenset(json.loads(bytes(content)))

    def write_subscribed(self, queries: Sequence[str]) -> None:
        """Name the queries that have subscribers from now on."""
        if queries:
            self.storage.put(self._subscribed, json.dumps(queries).encode(), durable=False)
        else:
            self.storage.delete([self._subscribed])


_loaded: dict[str, LoadedDeployment] = {}
"""The newest version of each file read by this process; the first bytes identify a version, because
they contain its checksum."""


def encode_deployment(run: str, deployment: Deployment) -> bytes:
    """Return the content of the file of a run's deployment."""
    return encode(StoredDeployment(run, deployment), _KIND)


def decode_deployment(content: Buffer, where: str = "the deployment of the engine") -> Deployment:
    """Return the deployment in the content of its file."""
    return decode(content, _KIND, StoredDeployment, where).deployment


def read_stored(storage: Storage) -> StoredDeployment | None:
    """Return the run and the deployment in a storage; None if there is no file."""
    content = storage.find(PROGRAM)
    if content is None:
        return None
    return decode(content, _KIND, StoredDeployment, storage.where(PROGRAM))
