"""The file for Java's messages is deleted at the end of a process, unless an error names it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os
from muntin.spark.session import JavaLog
log = JavaLog()
assert log.keep() == ""
os.write(log.begin(), b"hello")
if {named}:
    print(log.keep())
"""


@pytest.mark.parametrize("named", [False, True])
def test_the_file_is_kept_only_if_an_error_named_it(tmp_path: Path, *, named: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(named=named)],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    files = list(tmp_path.glob("muntin-spark-*.log"))
    assert [file.read_bytes() for file in files] == [b"hello"] * named
    assert all(str(file) in done.stdout for file in files)
