from __future__ import annotations

from pathlib import Path

import pytest

from muntin.spark.session import JavaError, check_java, java_options, java_version


def made_up_java(folder: Path, says: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{says}\n", encoding="utf-8")
    java.chmod(0o755)
    return java


def test_a_missing_java_is_reported_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaError, match=r"there is no java on the PATH.*make setup"):
        check_java()


def test_a_java_home_without_java_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaError, match=f"JAVA_HOME={tmp_path} has no bin/java"):
        check_java()


@pytest.mark.parametrize(
    ("says", "message"),
    [
        ("echo 'openjdk version \"11.0.2\" 2019-01-15' >&2", "17 or later, and .* is version 11"),
        ("echo 'java version \"1.8.0_391\"' >&2", "17 or later, and .* is version 8"),
        ("echo hello", "no version that we understand"),
    ],
)
def test_a_java_that_is_too_old_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: str, message: str
) -> None:
    made_up_java(tmp_path, says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaError, match=message):
        check_java()


def test_a_java_that_does_not_run_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made_up_java(tmp_path, "").write_text("no program", encoding="utf-8")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaError, match=r"does not run|no version"):
        check_java()


def test_a_recent_java_is_accepted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made_up_java(tmp_path, "echo 'openjdk version \"21\" 2023-09-19' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    check_java()
    assert java_version('openjdk version "21" 2023-09-19') == 21


@pytest.mark.parametrize(
    ("master", "optimizes"),
    [(None, True), ("local[2,4]", True), ("spark://host:7077", False), ("yarn", False)],
)
def test_only_a_java_that_runs_tasks_has_the_optimizing_compiler(
    master: str | None, *, optimizes: bool
) -> None:
    options = java_options(master).split()
    assert "-Duser.timezone=UTC" in options
    assert ("-XX:TieredStopAtLevel=1" not in options) == optimizes
