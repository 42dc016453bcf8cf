"""One Spark session per xdist worker for the tests of this folder.

The tests form two groups of about the same length, ``spark-1`` and ``spark-2``, so at most two
workers run Spark, however many workers there are: more sessions at once would need more memory than
most machines have.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from muntin.spark.session import local_session

# Test sessions are short: code that Java compiles once and quickly is better than code that it
# optimizes again for long runs.
SHORT_LIVES = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
os.environ.setdefault("SPARK_SUBMIT_OPTS", SHORT_LIVES)
os.environ.setdefault("SPARK_LAUNCHER_OPTS", SHORT_LIVES)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = local_session(2)
    yield session
    session.stop()
