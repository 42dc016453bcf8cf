"""The lease of a checkpoint: one driver at a time, and none that was replaced can do harm.

A *claim* is a small file ``lease/<token>``. It names its holder and is rewritten at regular
intervals. A new driver lists the claims. If the holder of the greatest is alive, it is refused;
otherwise it writes a claim with a greater token and lists again. If another new claim is there, it
withdraws and tries again after a random delay, so of two drivers that start together at most one
goes on: whichever lists last sees the other. Tokens are a number and random digits: no two drivers
have the same one.

*Alive.* On one machine the operating system knows: the process exists and began at the recorded
time. On other machines a holder counts as dead if its claim has not changed while we watched it for
``patience`` seconds of our monotonic clock. Clocks of two machines are never compared.

*Fencing.* That may be wrong: a process that was paused for minutes wakes up and does not know that
it was replaced. Two facts make it harmless. They need storage in which a file is listed as soon as
its ``put`` has returned, which local disks, HDFS, S3, GCS and Azure are.

1. A driver that took over reads the manifests after it has written its claim, then records in the
   claim after which batch it begins. Readers ignore manifests of smaller tokens behind that batch.
   So a manifest of the replaced driver either was there when the new one looked, and is part of its
   state, or is ignored forever. The claim also has the records that its driver read the manifests
   with. Of all drivers that have begun, only the claim of the last one counts, so one that was
   paused before it recorded its batch cannot revoke later what another one has accepted.
2. A driver lists the claims before and after it writes a manifest, and does nothing that depends on
   the batch (delete files, let Spark commit) before the second listing shows no greater token. If
   it shows none, the manifest was complete before any later claim, so by 1 every later driver has
   it. If it shows one, the driver stops with an error.

Hence the batches that a driver treats as complete form one chain over all drivers. What a replaced
driver may still delete or overwrite is limited by :mod:`muntin.spark.storage.fence`.

The claim with the greatest token always stays, marked as released after a stop, so that tokens
never repeat. Older claims are deleted once a new one has recorded its first batch.
"""

from __future__ import annotations

import logging
import os
import random
import secrets
import threading
import time
import weakref
from dataclasses import dataclass, field, replace
from pathlib import Path

from muntin.runtime.codec import decode, encode
from muntin.runtime.frames import Buffer, CheckpointError
from muntin.spark.storage import Storage
from muntin.spark.storage.fence import Fence

_log = logging.getLogger("muntin.spark")

_FOLDER = "lease"
_KIND = "lease"
_ATTEMPTS = 8
"""How often a driver that starts at the same time as others tries again."""
_REMEMBERED = 256
"""Earlier drivers in a claim: those after each of which batches were completed."""


@dataclass(frozen=True)
class LeaseTiming:
    """Seconds between renewals, and without a renewal after which a remote holder is dead."""

    renewal: float = 10.0
    patience: float = 45.0
    poll: float = 0.5


@dataclass(frozen=True)
class Holder:
    """A process that can be told from every other one."""

    host: str
    machine: str
    pid: int
    started: str

    @classmethod
    def this(cls) -> Holder:
        """Return the current process."""
        pid = os.getpid()
        return cls(os.uname().nodename, _machine(), pid, _started(pid) or "")

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


@dataclass(frozen=True)
class Claim:
    """The content of a claim; ``after`` is the batch after which its driver begins.

    ``earlier`` has that of the drivers before it whose manifests it took over, by token.
    """

    token: str
    holder: Holder
    renewals: int = 0
    after: int | None = None
    released: bool = False
    earlier: dict[str, int] = field(default_factory=dict)


class Lease(Fence):
    """The right to change a checkpoint; ``name`` is that of the checkpoint in errors."""

    def __init__(self, storage: Storage, name: str, timing: LeaseTiming | None = None) -> None:
        self._storage = storage
        self._name = name
        self._timing = timing or LeaseTiming()
        self._held: _HeldClaim | None = None
        self._starts: dict[str, int] = {}
        """What the last call of :meth:`starts` has returned."""
        self._forgotten: weakref.finalize[..., Lease] | None = None

    @property
    def token(self) -> str:
        """Return the token while the lease is held; otherwise empty."""
        return "" if self._held is None else self._held.claim.token

    def acquire(self) -> None:
        """Claim the checkpoint.

        Raises
        ------
        CheckpointError
            When another engine has it, in this process or another, or when a claim cannot be
            written.
        """
        if self._held is not None:
            return
        for _ in range(_ATTEMPTS):
            number = self._await_death()
            claim = Claim(f"{number:08d}-{secrets.token_hex(4)}", Holder.this())
            held = _HeldClaim(self._storage, claim, self._timing)
            if not self._rivals(claim.token):
                self._held = held
                self._forgotten = weakref.finalize(self, held.abandon)
                held.start()
                return
            held.withdraw()
            time.sleep(random.uniform(0.02, 0.2))  # noqa: S311 (against starting in step)
        raise self._refused("one that starts at the same time")

    def _rivals(self, own: str) -> list[str]:
        """Return the claims of drivers that start at the same time, or have started meanwhile.

        All write before they look, so of two that both go on, one must have seen the other. Their
        numbers may differ: one driver counted on from a claim that its holder was withdrawing, and
        the other one did not find that claim any more.
        """
        return [
            token
            for token in _tokens(self._storage)
            if token != own and (_number(token) >= _number(own) or self._is_alive(token))
        ]

    def _is_alive(self, token: str) -> bool:
        """Return whether the holder of a claim is known to be alive: only on this machine."""
        claim = _decoded(self._storage.find(f"{_FOLDER}/{token}") or b"")
        return claim is not None and claim.holder.machine == _machine() and not _is_over(claim)

    def _await_death(self) -> int:
        """Return the number of the next claim, once the holder of the last one is dead."""
        known: tuple[str, bytes] | None = None
        until = time.monotonic() + self._timing.patience
        while True:
            token = max(_tokens(self._storage), default="")
            content = self._storage.find(f"{_FOLDER}/{token}") if token else b""
            if content is None:  # its driver has withdrawn it meanwhile
                if time.monotonic() > until:
                    raise self._refused("unknown")
                time.sleep(self._timing.poll)
                continue
            number = _number(token) + 1
            claim = _decoded(content)
            if not token or (claim is not None and _is_over(claim)):
                return number
            if claim is not None and claim.holder.machine == _machine():
                raise self._refused(str(claim.holder))
            if known is None:
                known, until = (token, bytes(content)), time.monotonic() + self._timing.patience
                _log.info("waiting for a sign of life of the holder of %s", self._name)
            elif known != (token, bytes(content)):
                raise self._refused(str(claim.holder) if claim else "unknown")
            elif time.monotonic() > until:
                _log.warning(
                    "took over %s: its holder (%s) has given no sign of life for %g seconds",
                    self._name,
                    claim.holder if claim else "unknown",
                    self._timing.patience,
                )
                return number
            time.sleep(self._timing.poll)

    def _refused(self, holder: str) -> CheckpointError:
        return CheckpointError(
            f"{self._name} is in use by another engine ({holder})",
            hint="Stop that one first, or give each engine a separate checkpoint",
        )

    def begin(self, after: int) -> None:
        """Record the last batch that this driver has found; earlier claims are obsolete then.

        It was found with the last result of :meth:`starts`. Of that, a driver is remembered if it
        began before that batch; the others say nothing that this record does not say.
        """
        if self._held is not None:
            own = self._held.claim.token
            earlier = [one for one in self._starts.items() if one[0] < own and one[1] < after]
            self._held.write(after=after, earlier=dict(sorted(earlier)[-_REMEMBERED:]))
            old = [f"{_FOLDER}/{token}" for token in _tokens(self._storage) if token < own]
            self._storage.delete(old)

    def check(self) -> None:
        """Raise if a later driver has claimed the checkpoint."""
        if self._held is None:
            return
        self._held.look()
        if self._held.lost:
            raise CheckpointError(
                f"{self._name} was taken over by another engine ({self._successor()}) because "
                "this one gave no sign of life",
                hint="Nothing is lost: that one continues with the last complete batch. Stop this "
                "one, and check what has paused it",
            )

    def _successor(self) -> str:
        token = max(_tokens(self._storage), default="")
        claim = _decoded(self._storage.find(f"{_FOLDER}/{token}") or b"")
        return "unknown" if claim is None else str(claim.holder)

    def starts(self) -> dict[str, int]:
        """Return the batch after which the last driver that has begun, and those before it, began.

        A driver that begins late, after another one with a greater token, is not among them: the
        other one has accepted manifests without it.
        """
        self._starts = {}
        for token in sorted(_tokens(self._storage), reverse=True):
            claim = _decoded(self._storage.find(f"{_FOLDER}/{token}") or b"")
            if claim is not None and claim.after is not None:
                self._starts = {**claim.earlier, token: claim.after}
                break
        return self._starts

    def release(self) -> None:
        """Mark the claim as released; does nothing without one."""
        held, self._held = self._held, None
        if held is not None:
            assert self._forgotten is not None, "it was acquired"
            self._forgotten.detach()
            held.abandon()
            if held.lost:
                return
            try:
                held.write(released=True)
            except CheckpointError as error:
                _log.warning("the lease of %s could not be released: %s", self._name, error)


@dataclass(eq=False)
class _HeldClaim:
    """A claim in storage and the thread that renews it; it does not refer to its lease.

    So an engine that nobody stopped and nobody refers to any more does not keep its checkpoint.
    """

    storage: Storage
    claim: Claim
    timing: LeaseTiming
    lost: bool = False
    _ended: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        _held_here.add(self.claim.token)
        try:
            self.write()
        except BaseException:
            self.abandon()
            raise

    def write(
        self,
        *,
        after: int | None = None,
        earlier: dict[str, int] | None = None,
        released: bool = False,
    ) -> None:
        """Write the claim again, which is a sign of life."""
        with self._lock:
            claim = self.claim
            self.claim = replace(
                claim,
                renewals=claim.renewals + 1,
                after=claim.after if after is None else after,
                earlier=claim.earlier if earlier is None else earlier,
                released=released or claim.released,
            )
            self.storage.put(f"{_FOLDER}/{claim.token}", encode(self.claim, _KIND))

    def look(self) -> None:
        """Look for a later claim.

        One with the same number is that of a driver that started at the same time; it will find
        this one and withdraw.
        """
        own = _number(self.claim.token)
        self.lost = self.lost or any(_number(token) > own for token in _tokens(self.storage))

    def withdraw(self) -> None:
        """Delete the claim, which nothing was done with."""
        self.abandon()
        self.storage.delete([f"{_FOLDER}/{self.claim.token}"])

    def abandon(self) -> None:
        """Stop renewing; other engines of this process may take over."""
        self._ended.set()
        _held_here.discard(self.claim.token)

    def start(self) -> None:
        """Renew the claim from now on."""
        threading.Thread(target=self._renew, name="muntin-lease", daemon=True).start()

    def _renew(self) -> None:
        failing = False
        while not self._ended.wait(self.timing.renewal):
            try:
                self.look()
                if self.lost:
                    return
                if not self._ended.is_set():
                    self.write()
                failing = False
            except CheckpointError as error:
                if not failing:
                    _log.warning("the lease could not be renewed: %s", error)
                failing = True


_held_here: set[str] = set()
"""The tokens of the claims that engines of this process hold."""


def _tokens(storage: Storage) -> list[str]:
    """Return the tokens of all claims."""
    return [name for name in storage.names(_FOLDER) if name[:8].isdecimal()]


def _number(token: str) -> int:
    return int(token.partition("-")[0] or 0)


def _decoded(content: Buffer) -> Claim | None:
    """Return a claim; None if it cannot be read, which does not make its holder dead."""
    try:
        return decode(content, _KIND, Claim, "a claim")
    except CheckpointError:
        return None


def _is_over(claim: Claim) -> bool:
    """Return whether a claim is released, or its holder is known to be dead."""
    if claim.released:
        return True
    holder = claim.holder
    if holder.machine != _machine():
        return False
    if _started(holder.pid) != holder.started:
        return True
    return holder.pid == os.getpid() and claim.token not in _held_here


def _machine() -> str:
    """Return what identifies this machine since it was booted, and its numbering of processes."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot} {Path('/proc/self/ns/pid').readlink()}"


def _started(pid: int) -> str | None:
    """Return when a process began, in the kernel's units; None if it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *rest = text.rpartition(")")[2].split()
    return None if state in {"Z", "X"} else rest[18]
