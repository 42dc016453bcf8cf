"""A local Spark session that is set up right, and the Java it needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from muntin.errors import MuntinError

LEAST_JAVA = 17
_RETRIES = 4

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.memory": "2g",
    "spark.driver.maxResultSize": "0",
    "spark.python.worker.reuse": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000000",
    "spark.sql.adaptive.enabled": "false",
}

STREAMING = {
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""What every session needs that runs our pipeline."""

_LOCAL_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
"""For local disks: Spark's default forks a process for every file it makes, about 65 a micro-batch; this one about 14."""


class JavaError(MuntinError):
    """Java is missing or too old."""


def local_session(buckets: int, settings: Mapping[str, str] | None = None) -> SparkSession:
    """The session of this process: the one there is, or a new local one with as many threads as there are cores."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    check_java()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    cores = max(os.cpu_count() or 1, 2)
    # A task that fails (a worker was killed) is tried again; plain local[n] would give up at once.
    builder = SparkSession.builder.master(f"local[{cores},{_RETRIES}]").appName("muntin")
    wanted = {
        **_SETTINGS,
        **STREAMING,
        "spark.sql.streaming.checkpointFileManagerClass": _LOCAL_FILES,
        "spark.sql.shuffle.partitions": str(buckets),
        "spark.default.parallelism": str(cores),
        **(settings or {}),
    }
    for name, value in wanted.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def check_java() -> None:
    """Raise unless there is a Java that Spark can use."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    remedy = "Run make setup, or install a Java runtime of version 17 or later (on Debian and Ubuntu: apt install openjdk-17-jre-headless)"
    if java is None or not Path(java).exists():
        where = f"JAVA_HOME={home} has no bin/java" if home else "there is no java on the PATH"
        raise JavaError(f"Spark needs Java, and {where}", hint=remedy)
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaError(f"{java} does not run: {error}", hint=remedy) from error
    version = java_version(said.stderr + said.stdout)
    if version is None or version < LEAST_JAVA:
        found = f"version {version}" if version else "no version that we understand"
        raise JavaError(f"Spark needs Java {LEAST_JAVA} or later, and {java} is {found}", hint=remedy)


def java_version(text: str) -> int | None:
    """The major version in what ``java -version`` says.

    >>> java_version('openjdk version "17.0.15" 2025-04-15'), java_version('java version "1.8.0_391"'), java_version("?")
    (17, 8, None)
    """
    found = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if not found:
        return None
    major = int(found.group(1))
    return int(found.group(2) or 0) if major == 1 else major
