"""An S3 server and a Kafka broker on this machine, and a Spark session with connectors for them.

These tests run with ``-m connectors`` only, after ``scripts/connectors.sh``: ``make
test-connectors`` does both.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from muntin.spark.session import local_session
from tests.connectors.kafka_broker import Broker, Kafka, free_port

FOLDER = Path(__file__).resolve().parents[2] / ".connectors"
KEY, SECRET = "AKIDMUNTIN", "secret-that-must-not-be-written-anywhere"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of this folder unless they are asked for."""
    if "connectors" not in str(config.getoption("markexpr")):
        left_out = [item for item in items if item.get_closest_marker("connectors")]
        items[:] = [item for item in items if not item.get_closest_marker("connectors")]
        config.hook.pytest_deselected(items=left_out)


def new_bucket(endpoint: str) -> str | None:
    """Create a bucket and return its name; None if the server does not answer."""
    bucket = f"bucket-{uuid.uuid4().hex[:8]}"
    with contextlib.suppress(urllib.error.URLError, OSError):
        request = urllib.request.Request(f"{endpoint}/{bucket}", method="PUT")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return bucket if answer.status == 200 else None
    return None


@dataclass(frozen=True)
class Store:
    """An S3 server and a bucket in it."""

    endpoint: str
    bucket: str

    @property
    def url(self) -> str:
        return f"s3a://{self.bucket}"

    def settings(self) -> dict[str, str]:
        """Return Hadoop's settings for it."""
        return {
            "fs.s3a.endpoint": self.endpoint,
            "fs.s3a.endpoint.region": "us-east-1",
            "fs.s3a.access.key": KEY,
            "fs.s3a.secret.key": SECRET,
            "fs.s3a.path.style.access": "true",
            "fs.s3a.connection.ssl.enabled": "false",
            "fs.s3a.connection.establish.timeout": "2s",
            "fs.s3a.connection.timeout": "3s",
        }

    def spark_settings(self) -> dict[str, str]:
        """Return Spark's settings for it."""
        return {
            "spark.driver.extraClassPath": f"{FOLDER / 'jars'}/*",
            **{f"spark.hadoop.{name}": value for name, value in self.settings().items()},
        }


@pytest.fixture(scope="session")
def store() -> Iterator[Store]:
    """Start a server and create a bucket."""
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    command = [FOLDER / "venv" / "bin" / "python", "-m", "moto.server", "-H", "127.0.0.1"]
    with subprocess.Popen(
        [*map(str, command), "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            until = time.monotonic() + 60
            while (bucket := new_bucket(endpoint)) is None:
                assert time.monotonic() < until, "the S3 server does not answer"
                assert server.poll() is None, "the S3 server has ended: run make test-connectors"
                time.sleep(0.1)
            yield Store(endpoint, bucket)
        finally:
            server.terminate()
            server.wait(20)


@pytest.fixture(scope="session")
def spark(store: Store) -> Iterator[SparkSession]:
    session = local_session(2, store.spark_settings())
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Start a broker."""
    started = Broker(tmp_path_factory.mktemp("kafka") / "broker", FOLDER / "broker")
    started.format()
    started.start()
    yield started
    started.kill()


@pytest.fixture(scope="session")
def kafka(spark: SparkSession, broker: Broker) -> Iterator[Kafka]:
    clients = Kafka(spark, broker)
    yield clients
    clients.close()
