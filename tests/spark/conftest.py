"""One Spark session for all tests in this folder; they stay in one worker of xdist (the group ``spark``)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from muntin.spark.session import local_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = local_session(2)
    yield session
    session.stop()
