"""A standalone Spark cluster on this machine: master and workers as separate processes.

The processes are started with the scripts of the pyspark package. Every process of the cluster and
of its drivers carries a mark in its environment, so all of them can be found and ended even after
their parents have exited.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import pyspark

import muntin
from muntin.testing.processes import command, descendants, kill, wait_gone

_MARK = "MUNTIN_TEST_CLUSTER"
_HOST = "127.0.0.1"
_HOME = Path(pyspark.__file__).parent
SETTINGS = {
    "spark.driver.host": _HOST,
    "spark.driver.memory": "600m",
    "spark.executor.memory": "600m",
    "spark.cores.max": "2",
    # Both executors are registered before the first batch.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
}


def free_port() -> int:
    """Return a port of this machine on which nothing listens."""
    with socket.socket() as listening:
        listening.bind((_HOST, 0))
        port: int = listening.getsockname()[1]
        return port


@dataclass
class Cluster:
    """A master and some workers of one core each, used in a ``with`` statement.

    On exit it leaves no process behind. ``memory`` is the megabytes of a worker; ``java`` are
    options of all of its JVMs.
    """

    folder: Path
    workers: int = 2
    memory: int = 700
    # Six short-lived JVMs share a few cores in tests.
    java: str = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    _mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    _started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True)
        self._port = free_port()
        try:
            arguments = ["--host", _HOST, "--port", str(self._port), "--webui-port", "0"]
            self._start("master", "org.apache.spark.deploy.master.Master", arguments)
            self._wait_for_master()
            self.worker_pids = [self._start_worker(number) for number in range(self.workers)]
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    @property
    def master(self) -> str:
        """Return the address of the master."""
        return f"spark://{_HOST}:{self._port}"

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of cluster and drivers: this interpreter, these sources."""
        return {
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(Path(muntin.__file__).parents[1]),
            "SPARK_HOME": str(_HOME),
            "SPARK_LOCAL_IP": _HOST,
            "SPARK_DAEMON_MEMORY": "256m",
            "JAVA_TOOL_OPTIONS": self.java,
            # The REST server would take another port.
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
            _MARK: self._mark,
        }

    def processes(self, text: str = "") -> list[int]:
        """Return all processes of the cluster and its drivers whose command contains a text."""
        wanted = f"{_MARK}={self._mark}".encode()
        found = []
        for path in Path("/proc").iterdir():
            if path.name.isdecimal():
                with suppress(OSError):
                    if wanted in (path / "environ").read_bytes().split(b"\0") and text in command(
                        int(path.name)
                    ):
                        found.append(int(path.name))
        return found

    def state_servers(self) -> dict[int, tuple[str, int]]:
        """Return the state servers of all executors.

        Each process maps to its partition's socket and the process that it ends with.
        """
        commands = {
            pid: command(pid).split()
            for pid in self.processes("-m muntin.spark.partition.state_server")
        }
        return {
            pid: (words[-3], int(words[-1])) for pid, words in commands.items() if len(words) > 3
        }

    def kill_worker(self, pid: int) -> list[int]:
        """Kill a worker and its executors without warning and return the process ids.

        Python workers of an executor are not killed; they must notice the loss.
        """
        killed = [
            pid,
            *(
                below
                for below in descendants(pid)
                if "CoarseGrainedExecutorBackend" in command(below)
            ),
        ]
        for victim in killed:
            kill(victim)
        return killed

    def log(self, most: int = 3000) -> str:
        """Return the end of what each process has logged."""
        return "\n".join(
            f"{path.name}: {path.read_text(encoding='utf-8')[-most:]}"
            for path in sorted(self.folder.glob("*.log"))
        )

    def _start_worker(self, number: int) -> int:
        memory = ["--memory", f"{self.memory}m"]
        resources = ["--host", _HOST, "--cores", "1", *memory, "--webui-port", "0"]
        arguments = [*resources, "--work-dir", str(self.folder / f"work{number}"), self.master]
        return self._start(f"worker{number}", "org.apache.spark.deploy.worker.Worker", arguments)

    def _start(self, name: str, program: str, arguments: list[str]) -> int:
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(  # noqa: S603
                [str(_HOME / "bin" / "spark-class"), program, *arguments],
                stdout=log,
                stderr=log,
                env=self.environment,
                start_new_session=True,
            )
        self._started.append(process)
        return process.pid

    def _wait_for_master(self) -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until and self._started[0].poll() is None:
            with suppress(OSError), socket.create_connection((_HOST, self._port), 1):
                return
            time.sleep(0.1)
        raise AssertionError("the master does not start: " + self.log())

    def _end(self) -> None:
        for _ in range(3):  # one may start another while we look
            for pid in self.processes():
                with suppress(ProcessLookupError):
                    kill(pid)
            for process in self._started:
                process.wait(30)
            if not wait_gone(self.processes(), 5):
                return
        raise AssertionError(f"processes are left: {[command(pid) for pid in self.processes()]}")
