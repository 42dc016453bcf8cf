"""When kernels are compiled anew, and what a first start says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muntin.kernels import jit as compiling

SOURCES = sorted(Path(compiling.__file__).parent.glob("*.py"))


@pytest.fixture
def fresh() -> Iterator[None]:
    """As if nothing had been prepared yet in this process."""
    prepared = compiling._prepared
    compiling._stamp.cache_clear()
    compiling._prepared = False
    yield
    compiling._stamp.cache_clear()
    compiling._prepared = prepared


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("changed", SOURCES, ids=lambda path: path.stem)
def test_the_stamp_changes_with_the_text_of_any_kernel_file(
    changed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in SOURCES:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(compiling, "__file__", str(tmp_path / "compiling.py"))
    before = compiling._stamp()
    compiling._stamp.cache_clear()
    assert compiling._stamp() == before
    (tmp_path / changed.name).write_bytes(changed.read_bytes() + b"# another line\n")
    compiling._stamp.cache_clear()
    assert compiling._stamp() != before


class _Kernel:
    def __init__(self, misses: dict[str, int]) -> None:
        self.compiled: list[str] = []
        self.stats: Any = type("Stats", (), {"cache_misses": misses})()

    def compile(self, signature: str) -> None:
        self.compiled.append(signature)


@pytest.mark.usefixtures("fresh")
def test_preparing_reports_each_kernel_that_was_not_in_the_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    warm, cold = _Kernel({}), _Kernel({"(int64,)": 1})
    monkeypatch.setattr(
        compiling, "_kernels", [("warm", warm, "(int64,)"), ("cold", cold, "(int64,)")]
    )
    said: list[str] = []
    assert compiling.prepare(said.append) > 0
    assert warm.compiled == cold.compiled == ["(int64,)"]
    assert len(said) == 1
    assert said[0].startswith("muntin: compiled kernel 2 of 2, cold (")
    assert compiling.prepare(said.append) == 0.0
    assert len(said) == 1


@pytest.mark.usefixtures("fresh")
def test_progress_goes_to_stderr_unless_someone_listens(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compiling, "_kernels", [("cold", _Kernel({"()": 1}), "()")])
    compiling.prepare()
    said = capsys.readouterr()
    assert said.out == ""
    assert "compiled kernel 1 of 1, cold" in said.err


def test_importing_the_package_compiles_nothing() -> None:
    program = "import muntin\nmuntin.Engine\nfrom muntin.kernels import compiling\nassert compiling._kernels\n"
    program += "print(sum(len(kernel.signatures) for _, kernel, _ in compiling._kernels))"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert (done.stdout.strip(), done.stderr) == ("0", "")
