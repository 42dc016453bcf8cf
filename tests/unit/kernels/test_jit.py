"""When kernels are compiled again, and what a first start prints."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from muntin.kernels import jit
from muntin.kernels.arrays import Integers, Table
from muntin.testing.kernel_checks import checked

SOURCES = sorted(Path(jit.__file__).parent.glob("*.py"))


@pytest.fixture
def fresh() -> Iterator[None]:
    """Reset the process to a state in which nothing has been prepared yet."""
    prepared = jit._prepared
    jit._stamp.cache_clear()
    jit._prepared = False
    yield
    jit._stamp.cache_clear()
    jit._prepared = prepared


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("changed", SOURCES, ids=lambda path: path.stem)
def test_the_stamp_changes_with_the_text_of_any_kernel_file(
    changed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in SOURCES:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(jit, "__file__", str(tmp_path / "jit.py"))
    before = jit._stamp()
    jit._stamp.cache_clear()
    assert jit._stamp() == before
    (tmp_path / changed.name).write_bytes(changed.read_bytes() + b"# another line\n")
    jit._stamp.cache_clear()
    assert jit._stamp() != before


class _Kernel:
    def __init__(self, name: str, *, cached: bool) -> None:
        self.name = name
        self.compiled = 0
        self._cached = cached

    def compile(self) -> bool:
        self.compiled += 1
        return self._cached


@pytest.mark.usefixtures("fresh")
def test_preparing_reports_each_kernel_that_was_not_in_the_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    warm, cold = _Kernel("warm", cached=True), _Kernel("cold", cached=False)
    monkeypatch.setattr(jit, "_kernels", [warm, cold])
    said: list[str] = []
    assert jit.prepare(said.append) > 0
    assert warm.compiled == cold.compiled == 1
    assert len(said) == 1
    assert said[0].startswith("muntin: compiled kernel 2 of 2, cold (")
    assert jit.prepare(said.append) == 0.0
    assert len(said) == 1


@pytest.mark.usefixtures("fresh")
def test_progress_goes_to_stderr_unless_a_listener_is_given(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jit, "_kernels", [_Kernel("cold", cached=False)])
    jit.prepare()
    said = capsys.readouterr()
    assert said.out == ""
    assert "compiled kernel 1 of 1, cold" in said.err


def test_importing_the_package_compiles_nothing() -> None:
    program = "import muntin\nmuntin.Engine\nfrom muntin.kernels import jit\nassert jit._kernels\n"
    program += "print(sum(kernel._entry is not None for kernel in jit.all_kernels()))"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert (done.stdout.strip(), done.stderr) == ("0", "")


class Two(NamedTuple):
    numbers: Integers
    factor: int


def test_a_kernel_takes_named_tuples_and_refuses_other_types(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def scale(two: Two, table: Table, offset: float) -> float:
        return float(two.numbers[0] * two.factor + table[0, 0] + offset)

    for guard in (checked, None):
        monkeypatch.setattr(jit, "guard", guard)
        made = jit.Kernel(scale, (Two, Table, float))
        numbers, table = np.full(3, 5, np.int64), np.full((2, 2), 7, np.int64)
        assert made(Two(numbers, 3), table, 0.5) == 22.5
        with pytest.raises(TypeError):
            made(Two(numbers.astype(np.int32), 3), table, 0.5)
        if guard:
            with pytest.raises(TypeError):
                made(Two(np.arange(6)[::2], 3), table, 0.5)


KERNEL = """
from muntin.kernels.jit import Kernel

def double(x):
    return 2 * x

if __name__ == "__main__":
    kernel = Kernel(double, (int,))
    print(kernel.compile(), kernel(21))
"""


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", [b"", b"cut off", b"cnone.such\nName\n."])
def test_a_cache_that_cannot_be_read_is_written_again(
    tmp_path: Path, ending: str, damage: bytes
) -> None:
    script = tmp_path / "doubling.py"
    script.write_text(KERNEL, encoding="utf-8")

    def run() -> str:
        done = subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=120
        )
        return done.stdout

    assert run() == "False 42\n"
    assert run() == "True 42\n"
    (file,) = (tmp_path / "__pycache__").glob(f"*.{ending}")
    content = file.read_bytes()
    # An index begins with the version of numba, so that only what follows is another one's.
    kept = (
        content[: content.index(b".") + 1] if ending == "nbi" and damage.startswith(b"c") else b""
    )
    file.write_bytes(kept + damage)
    assert run().endswith(" 42\n")
    assert run() == "True 42\n"
