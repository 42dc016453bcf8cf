"""The contents of an installed Muntin."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib.metadata import entry_points, metadata
from pathlib import Path

import muntin

ROOT = Path(__file__).resolve().parents[2]


def test_the_command_is_installed() -> None:
    (command,) = entry_points(group="console_scripts", name="muntin")
    assert command.value == "muntin.cli:main"
    assert callable(command.load())
    assert metadata("muntin")["Version"] == muntin.__version__
    assert metadata("muntin")["License-Expression"] == "Apache-2.0"


def test_public_names_exist_and_are_documented() -> None:
    for name in muntin.__all__:
        assert hasattr(muntin, name)
    for name in ("Engine", "StandingQuery"):
        for member, value in vars(getattr(muntin, name)).items():
            if not member.startswith("_") and callable(value):
                assert value.__doc__, f"{name}.{member} says what it does"


def test_a_wheel_has_all_modules_the_command_and_the_types(tmp_path: Path) -> None:
    """It is built from a copy of a fresh checkout, without network access."""
    source = tmp_path / "source"
    for path in [
        ROOT / "pyproject.toml",
        ROOT / "README.md",
        ROOT / "LICENSE",
        *sorted((ROOT / "src" / "muntin").rglob("*.py")),
        *sorted((ROOT / "src" / "muntin" / "console" / "static").iterdir()),
    ]:
        target = source / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    (source / "src" / "muntin" / "py.typed").touch()
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        ".",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "-w",
        str(tmp_path),
        "-q",
    ]
    built = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("muntin-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {
        str(path.relative_to(ROOT / "src")) for path in (ROOT / "src" / "muntin").rglob("*.py")
    } <= names
    assert "muntin/py.typed" in names
    page = ROOT / "src" / "muntin" / "console" / "static"
    assert {f"muntin/console/static/{file.name}" for file in page.iterdir()} <= names
    scripts = next(name for name in names if name.endswith("entry_points.txt"))
    assert "muntin = muntin.cli:main" in zipfile.ZipFile(wheel).read(scripts).decode()
    assert not any(name.startswith("tests") for name in names)


def test_the_command_line_starts_as_a_program() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("muntin"), "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"muntin {muntin.__version__}\n"


WITHOUT_EXTRAS = """
import sys

OPTIONAL = {"pandas", "pyspark", "typer", "rich", "hypothesis", "matplotlib", "scipy"}
OPTIONAL |= {"anyio", "starlette", "uvicorn"}

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in OPTIONAL:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""


def run_without_extras(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS + program],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_engine_needs_no_extra() -> None:
    done = run_without_extras("""
import muntin
import muntin.testing
engine = muntin.Engine()
engine.stream("A", {"k": "bigint", "ts": "timestamp"})
query = engine.query("SELECT k, COUNT(*) AS n FROM A GROUP BY k WINDOW 1 MINUTE")
engine.push("A", [(7, "2026-01-01")])
engine.advance("2026-01-01 00:00:01")
print(query.answer().to_pylist())
engine.explain(), engine.stats()
""")
    assert (done.stdout, done.stderr) == ("[{'k': 7, 'n': 1}]\n", "")


def test_what_needs_an_extra_names_it() -> None:
    done = run_without_extras("from muntin.cli import main; main()")
    assert done.returncode == 1
    assert "pip install 'muntin[cli]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert (
        "pip install 'muntin[spark]'"
        in run_without_extras("from muntin.spark import SparkEngine").stderr
    )
    assert (
        "pip install 'muntin[console]'"
        in run_without_extras("import muntin; muntin.Engine().console()").stderr
    )
