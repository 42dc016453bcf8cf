"""The model of batches by cores and partitions finds the parts that times were made of."""

from __future__ import annotations

from random import Random

import pytest

from benchmarks.spark_scaling import CORES_AND_PARTITIONS, SIZES, CostParts, Point, fit

PARTS = CostParts(fixed=90.0, driver=1.5, task=12.0, row=0.0006)


def points(parts: CostParts, noise: float = 0.0) -> list[Point]:
    random = Random(7)
    return [
        Point(
            cores,
            partitions,
            size.rows,
            parts.milliseconds(cores, partitions, size.rows) * random.uniform(1 - noise, 1 + noise),
        )
        for cores, partitions in CORES_AND_PARTITIONS
        for size in SIZES
    ]


def test_parts_are_found_again() -> None:
    found = fit(points(PARTS))
    assert (found.fixed, found.driver, found.task, found.row) == pytest.approx(
        (PARTS.fixed, PARTS.driver, PARTS.task, PARTS.row)
    )


def test_no_part_is_negative_and_noise_changes_predictions_little() -> None:
    found = fit(points(PARTS, noise=0.05))
    assert min(found.fixed, found.driver, found.task, found.row) >= 0
    predicted = found.milliseconds(16, 16, 500_000)
    assert predicted == pytest.approx(PARTS.milliseconds(16, 16, 500_000), rel=0.25)


def test_a_part_that_plays_no_role_is_zero() -> None:
    found = fit(points(CostParts(100.0, 0.0, 20.0, 0.001)))
    assert found.driver == pytest.approx(0.0, abs=1e-6)
