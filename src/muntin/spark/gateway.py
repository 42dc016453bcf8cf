"""Start Java in a separate session, and end it however this process is interrupted.

PySpark starts Java in the terminal's process group and loses it when Ctrl-C arrives meanwhile.
Here, signals of the terminal reach neither Java nor the Python workers it starts, and whoever
starts Java can end all of them as one process group.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int

from muntin.spark.temp_files import HeldFolder

_GLANCE = 0.05
_START = 180.0
"""Seconds in which Java has to be ready."""


class Java:
    """A Java process for Spark; ``interrupted`` returns whether the start is to be abandoned."""

    def __init__(self, conf: SparkConf, log: int, interrupted: Callable[[], bool]) -> None:
        self._conf = conf
        self._log = log
        self._interrupted = interrupted
        self._process: subprocess.Popen[bytes] | None = None
        self._abandoned = False

    def start_spark(self) -> None:
        """Start Java and a Spark context in it.

        Raises
        ------
        KeyboardInterrupt
            When that was interrupted; Java has ended then.
        """
        failures: list[BaseException] = []

        def start() -> None:
            try:
                SparkContext(conf=self._conf, gateway=self._gateway())
            except BaseException as error:  # noqa: BLE001 (raised again below)
                failures.append(error)

        # In a thread, because in the main one Spark would install a SIGINT handler that cancels
        # batches.
        thread = threading.Thread(target=start, name="muntin-java", daemon=True)
        thread.start()
        try:
            self._await(thread)
            if failures:
                raise failures[0]  # noqa: TRY301 (ends Java as all others do)
        except BaseException:
            self._abandoned = True
            self._kill()
            _forget_context()
            raise

    def _await(self, thread: threading.Thread) -> None:
        until = time.monotonic() + _START
        while thread.is_alive():
            thread.join(_GLANCE)
            if self._interrupted():
                raise KeyboardInterrupt
            if time.monotonic() > until:
                raise PySparkRuntimeError(f"Java was not ready after {_START:.0f} seconds")

    def _gateway(self) -> Any:
        with HeldFolder("java") as folder:
            info = folder / "port"
            process = self._process = self._launched(info)
            if self._abandoned:
                self._kill()
            while process.poll() is None and not info.is_file():
                time.sleep(_GLANCE)
            if not info.is_file():
                raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
            with info.open("rb") as file:
                port = read_int(file)  # type: ignore[no-untyped-call]
                secret = UTF8Deserializer().loads(file)  # type: ignore[no-untyped-call]
        with _environment(PYSPARK_GATEWAY_PORT=str(port), PYSPARK_GATEWAY_SECRET=secret):
            gateway = launch_gateway(self._conf)  # type: ignore[no-untyped-call]
        gateway.proc = process  # Java ends when its standard input is closed
        return gateway

    def _launched(self, info: Path) -> subprocess.Popen[bytes]:
        command = [str(Path(_find_spark_home()) / "bin" / "spark-submit")]
        for name, value in self._conf.getAll():
            command += ["--conf", f"{name}={value}"]
        command += shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
        environment = {
            **os.environ,
            "SPARK_CONNECT_MODE": "0",
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(info),
        }
        return subprocess.Popen(  # noqa: S603
            command,
            stdin=subprocess.PIPE,
            stderr=self._log,
            env=environment,
            start_new_session=True,
        )

    def _kill(self) -> None:
        """Kill Java and all processes it has started."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)


def _forget_context() -> None:
    """Make PySpark forget this Java, so that a later session can start another."""
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 (no public way)
    SparkContext._active_spark_context = None  # noqa: SLF001 (same)


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values:
            os.environ.pop(name, None)
