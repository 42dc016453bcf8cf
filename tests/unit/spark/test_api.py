"""The arguments of SparkEngine that are checked before Spark does anything."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest

from muntin.errors import SettingError
from muntin.spark import SparkEngine


def test_buckets_is_still_accepted_as_partitions_with_a_warning() -> None:
    with (
        pytest.warns(FutureWarning, match=r"SparkEngine\(partitions="),
        pytest.raises(SettingError, match="partitions cannot be 0"),
    ):
        SparkEngine(MagicMock(), buckets=0)
