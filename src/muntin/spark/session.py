"""Start a Spark session with the right settings, check Java, and keep Java's messages in a file.

Spark, its Python workers and the state servers write to the standard error of Java's process,
mostly noise. In sessions started here that goes to a file, which is removed at the end unless an
error has named it.
"""

from __future__ import annotations

import atexit
import fcntl
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from muntin.errors import RunError
from muntin.spark.gateway import Java
from muntin.spark.temp_files import HeldFolder

_log = logging.getLogger("muntin.spark")

LEAST_JAVA = 17
_RETRIES = 4
_LOOPBACK = "127.0.0.1"
SECRET = re.compile(r"\.(key|token|secret)(\.|$)")
"""Names of Hadoop's settings that may be in a credential store."""

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.memory": "2g",
    "spark.driver.maxResultSize": "0",
    "spark.python.worker.reuse": "true",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000000",
    "spark.sql.adaptive.enabled": "false",
    # Java allocates a block of this size per broadcast, and each stage has some of a few kilobytes:
    # blocks of Spark's default, 4 MB, started a collection in two of three batches.
    "spark.broadcast.blockSize": "256k",
}

_UTC = "-Duser.timezone=UTC"

_FASTER = {
    "spark.python.unix.domain.socket.enabled": (
        "true",
        "false",
        "a small batch takes about 40 ms longer per Python task",
    ),
    "spark.python.worker.reuse": ("true", "true", "every task starts a Python process"),
}
"""Settings that make batches faster: the value, Spark's default, and the cost of another one."""

_LOCAL_FILES = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
"""For local disks: Spark's default forks about 65 processes per micro-batch, this about 14."""


_POLLING = "spark.sql.streaming.pollingDelay"
_POLLING_DEFAULT = 10
_POLLING_OURS = "200ms"
"""The interval at which an idle query looks for input; Spark's default costs half a core."""


class JavaError(RunError):
    """Java is missing or too old, or Spark does not start in it."""


class JavaLog:
    """The file of Java's messages; ``path`` is None until a session is started here."""

    def __init__(self) -> None:
        self.path: Path | None = None

    def begin(self) -> int:
        """Create the file and open it for Java."""
        descriptor, name = tempfile.mkstemp(prefix="muntin-spark-", suffix=".log")
        self.path = Path(name)
        # Java inherits the lock with the descriptor: a log without one is a leftover.
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        atexit.register(self._remove)
        return descriptor

    def keep(self) -> str:
        """Return a sentence for an error that names the file; from then on the file stays."""
        if self.path is None:
            return ""
        atexit.unregister(self._remove)
        self.path.chmod(0o400)
        return f". Spark's messages are in {self.path}"

    def _remove(self) -> None:
        if self.path is not None:
            self.path.unlink(missing_ok=True)


java_log = JavaLog()


def local_session(
    partitions: int,
    settings: Mapping[str, str] | None = None,
    master: str | None = None,
    interrupted: Callable[[], bool] = lambda: False,
) -> SparkSession:
    """Return the active session, or start one: local with one thread per core, by default.

    Raises KeyboardInterrupt, and leaves no Java behind, if ``interrupted`` returns True while Java
    starts.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    check_java()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if _is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
    cores = max(os.cpu_count() or 1, 2)
    # A task that fails, because a worker was killed, is retried; plain local[n] would give up.
    conf = SparkConf().setMaster(master or f"local[{cores},{_RETRIES}]").setAppName("muntin")
    wanted = {
        **_SETTINGS,
        "spark.driver.extraJavaOptions": java_options(master),
        "spark.sql.streaming.checkpointFileManagerClass": _LOCAL_FILES,
        "spark.sql.shuffle.partitions": str(partitions),
        **_own_files(master),
        **({"spark.default.parallelism": str(cores)} if master is None else {}),
        **(settings or {}),
    }
    for name, value in wanted.items():
        conf.set(name, value)
    return _quiet_session(conf, interrupted)


def java_options(master: str | None) -> str:
    """Return the options of the driver's Java.

    On a cluster it plans and schedules but runs no tasks: too little to repay Java's optimizing
    compiler, which took half of the driver's CPU over twenty batches and made none of its threads
    faster over sixty. Where Java runs tasks too, it keeps that compiler.

    >>> java_options("local[2]"), java_options("spark://host:7077")
    ('-Duser.timezone=UTC', '-Duser.timezone=UTC -XX:TieredStopAtLevel=1')
    """
    return _UTC if _is_local(master) else f"{_UTC} -XX:TieredStopAtLevel=1"


def _is_local(master: str | None) -> bool:
    """Return whether tasks run in the Java of the driver."""
    return master is None or master.startswith("local")


def warn_of_slow_settings(spark: SparkSession) -> None:
    """Log which settings of a session that a user has created make batches slower."""
    conf = spark.sparkContext.getConf()
    for name, (wanted, default, cost) in _FASTER.items():
        if str(conf.get(name, default)).lower() != wanted:
            _log.warning("%s is not %s in this Spark session, so %s", name, wanted, cost)


def _own_files(master: str | None) -> dict[str, str]:
    """Return the folder of a local Spark's temporary files, unless the user has set one.

    The files that a killed process leaves there are swept later.
    """
    if not _is_local(master) or "SPARK_LOCAL_DIRS" in os.environ:
        return {}
    return {"spark.local.dir": str(_files().path)}


@cache
def _files() -> HeldFolder:
    """Return the folder of this process for Spark's files; consecutive sessions share it."""
    return HeldFolder("spark")


def _quiet_session(conf: SparkConf, interrupted: Callable[[], bool]) -> SparkSession:
    context, gateway = SparkContext._active_spark_context, SparkContext._gateway  # noqa: SLF001
    if context is None and gateway is None:
        descriptor = java_log.begin()
        try:
            Java(conf, descriptor, interrupted).start_spark()
        except (PySparkRuntimeError, Py4JJavaError) as error:
            raise JavaError(
                f"Spark does not start: {_first_line(error)}{java_log.keep()}",
                hint="Check master and Java",
            ) from error
        finally:
            os.close(descriptor)
    return SparkSession.builder.config(conf=conf).getOrCreate()


@contextmanager
def configured(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Change settings of a session inside a with block."""
    before = {name: spark.conf.get(name) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is not None:
                spark.conf.set(name, old)


@contextmanager
def polling_less(spark: SparkSession) -> Iterator[None]:
    """Make streaming queries started in the block poll less often, unless the user set it."""
    chosen = re.sub(r"\D", "", spark.conf.get(_POLLING) or "")
    with configured(spark, {_POLLING: _POLLING_OURS} if chosen == str(_POLLING_DEFAULT) else {}):
        yield


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next(
        (line for line in lines if "Exception:" in line),
        lines[0] if lines else type(error).__name__,
    ).rstrip(".")


def hadoop_settings(spark: SparkSession, names: Iterable[str]) -> dict[str, str]:
    """Return settings of the session's Hadoop configuration that are set and not empty."""
    session: Any = spark._jsparkSession  # noqa: SLF001 (Spark has no public way to them)
    conf = session.sessionState().newHadoopConf()
    found = {}
    for name in names:
        secret = conf.getPassword(name) if SECRET.search(name) else None
        value = conf.getTrimmed(name) if secret is None else "".join(secret)
        if value:
            found[name] = value
    return found


def driver_host(spark: SparkSession) -> tuple[str, str]:
    """Return the host name of this process for executors, and the address to bind to."""
    context = spark.sparkContext
    if (context.master or "").startswith("local"):
        return _LOOPBACK, _LOOPBACK
    host = context.getConf().get("spark.driver.host", _LOOPBACK)
    return host, context.getConf().get("spark.driver.bindAddress", host)


def check_java() -> None:
    """Raise if there is no Java that Spark can use."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    remedy = (
        "Run make setup, or install a Java runtime of version 17 or later "
        "(on Debian and Ubuntu: apt install openjdk-17-jre-headless)"
    )
    if java is None or not Path(java).exists():
        where = f"JAVA_HOME={home} has no bin/java" if home else "there is no java on the PATH"
        raise JavaError(f"Spark needs Java, and {where}", hint=remedy)
    try:
        said = subprocess.run(  # noqa: S603
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaError(f"{java} does not run: {error}", hint=remedy) from error
    version = java_version(said.stderr + said.stdout)
    if version is None or version < LEAST_JAVA:
        found = f"version {version}" if version else "no version that we understand"
        raise JavaError(
            f"Spark needs Java {LEAST_JAVA} or later, and {java} is {found}", hint=remedy
        )


def java_version(text: str) -> int | None:
    """Return the major version in the output of ``java -version``.

    >>> java_version('openjdk version "17.0.15" 2025-04-15'), java_version('version "1.8.0_391"')
    (17, 8)
    >>> java_version("?")
    """
    found = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if not found:
        return None
    major = int(found.group(1))
    return int(found.group(2) or 0) if major == 1 else major
