"""The scripts behind ``make setup``, run on a simulated machine with a few plain tools."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("bash", "cat", "chmod", "dirname", "env", "mkdir", "sed")


@dataclass(frozen=True)
class Machine:
    """A folder of programs that is the complete PATH, and a folder of Java installations."""

    folder: Path

    @property
    def programs(self) -> Path:
        return self.folder / "bin"

    @property
    def javas(self) -> Path:
        return self.folder / "jvm"

    def add(self, path: Path, script: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!{shutil.which('bash')}\n{script}\n")
        path.chmod(0o755)

    def add_program(self, name: str, script: str) -> None:
        self.add(self.programs / name, script)

    def add_java(self, program: Path, version: str) -> str:
        """Install a Java of this version at the path and return its home.

        The program may be a link from elsewhere.
        """
        home = f"/homes/java-{version}"
        self.add(program, java_script(version, home))
        return home

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        variables = {"PATH": str(self.programs), "JVM_FOLDER": str(self.javas), **environment}
        return subprocess.run(
            [ROOT / "scripts" / command[0], *command[1:]],
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )


def java_script(version: str, home: str) -> str:
    return f"""
[ "$*" = "-XshowSettings:properties -version" ] || exit 2
echo 'Picked up JAVA_TOOL_OPTIONS: -Dsome=thing' >&2
echo 'Property settings:' >&2
echo '    java.home = {home}' >&2
echo '    java.specification.version = {version}' >&2
echo '    java.vm.specification.version = 99' >&2
echo 'openjdk version "{version}.0.1" 2025-04-15' >&2"""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    made.programs.mkdir()
    made.javas.mkdir()
    for tool in TOOLS:
        real = shutil.which(tool)
        assert real is not None
        (made.programs / tool).symlink_to(real)
    return made


def add_apt(machine: Machine, *, has: str) -> Path:
    """Add an apt-get with one package, Java 17; return the file that records its calls."""
    calls = machine.folder / "calls"
    new_java = machine.javas / "new" / "bin" / "java"
    machine.add_program("id", "echo 0")
    machine.add_program(
        "apt-get",
        f"""
echo "$*" >>{calls}
case "$*" in
    update*) ;;
    "install --simulate -qq {has}") ;;
    "install -y -qq {has}") mkdir -p {new_java.parent}; cat >{new_java} <<'END'
#!{shutil.which("bash")}
{java_script("17", "/homes/new")}
END
        chmod +x {new_java} ;;
    *) echo "E: Unable to locate package" >&2; exit 100 ;;
esac""",
    )
    return calls


@pytest.mark.parametrize("version", ["17", "21", "25"])
def test_a_java_on_path_that_is_new_enough_is_taken(machine: Machine, version: str) -> None:
    home = machine.add_java(machine.programs / "java", version)
    done = machine.run("java.sh", "find")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{home}\n", "")


@pytest.mark.parametrize(("reported", "understood"), [("11", "11"), ("16", "16"), ("1.8", "8")])
def test_an_old_java_is_refused_by_version(
    machine: Machine, reported: str, understood: str
) -> None:
    machine.add_java(machine.programs / "java", reported)
    done = machine.run("java.sh", "find")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"is Java {understood}, Spark needs 17 or later" in done.stderr
    assert "JAVA_HOME=/path/to/java make setup" in done.stderr


@pytest.mark.parametrize(
    "script",
    [
        "echo 'no such thing: 17'",
        "exit 1",
        "echo '    java.specification.version = new'",
        "kill -9 $$",
    ],
)
def test_a_program_that_is_only_named_java_is_refused(machine: Machine, script: str) -> None:
    machine.add_program("java", script)
    done = machine.run("java.sh", "find")
    assert (done.returncode, done.stdout) == (1, "")
    assert "does not report its version as Java does" in done.stderr


def test_without_any_java_the_message_names_the_remedy(machine: Machine) -> None:
    done = machine.run("java.sh", "find")
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(
        r"setup: no Java of version 17 or later found; install .* JAVA_HOME=/path/to/java "
        r"make setup\n",
        done.stderr,
    )


def test_java_home_comes_before_path_and_path_before_the_distribution(
    machine: Machine, tmp_path: Path
) -> None:
    distribution = machine.add_java(machine.javas / "a" / "bin" / "java", "17")
    assert machine.run("java.sh", "find").stdout == f"{distribution}\n"
    on_path = machine.add_java(machine.programs / "java", "21")
    assert machine.run("java.sh", "find").stdout == f"{on_path}\n"
    named = machine.add_java(tmp_path / "my java" / "bin" / "java", "25")
    assert (
        machine.run("java.sh", "find", JAVA_HOME=str(tmp_path / "my java")).stdout == f"{named}\n"
    )


def test_unsuitable_java_versions_are_skipped_with_a_message(
    machine: Machine, tmp_path: Path
) -> None:
    machine.add_java(machine.programs / "java", "11")
    machine.add_program("../jvm/a/bin/java", "echo garbage")
    good = machine.add_java(machine.javas / "b" / "bin" / "java", "21")
    done = machine.run("java.sh", "find", JAVA_HOME=str(tmp_path / "nowhere"))
    assert (done.returncode, done.stdout) == (0, f"{good}\n")
    assert [line.rsplit("; ", 1)[1] for line in done.stderr.splitlines()] == ["skipping it"] * 3
    assert "nowhere holds no bin/java" in done.stderr


@pytest.mark.parametrize(
    "package", ["openjdk-21-jre-headless", "openjdk-17-jre-headless", "openjdk-25-jre-headless"]
)
def test_a_missing_java_is_installed_from_the_distribution(machine: Machine, package: str) -> None:
    calls = add_apt(machine, has=package)
    done = machine.run("java.sh", "ensure")
    assert (done.returncode, done.stdout) == (0, "/homes/new\n"), done.stderr
    assert calls.read_text().splitlines()[-1] == f"install -y -qq {package}"
    assert f"installing {package} with apt-get" in done.stderr


def test_nothing_is_installed_when_there_is_a_java(machine: Machine) -> None:
    calls = add_apt(machine, has="openjdk-21-jre-headless")
    home = machine.add_java(machine.programs / "java", "17")
    assert machine.run("java.sh", "ensure").stdout == f"{home}\n"
    assert not calls.exists()


def test_a_distribution_without_a_suitable_java_is_reported(machine: Machine) -> None:
    calls = add_apt(machine, has="openjdk-8-jre-headless")
    done = machine.run("java.sh", "ensure")
    assert (done.returncode, done.stdout) == (1, "")
    assert "none of these packages: openjdk-21-jre-headless openjdk-17-jre-headless" in done.stderr
    assert "for the last one it reported: E: Unable to locate package" in done.stderr
    assert "JAVA_HOME=/path/to/java make setup" in done.stderr
    assert "install -y" not in calls.read_text()


def test_sudo_is_used_by_those_who_are_not_root_and_named_when_missing(machine: Machine) -> None:
    calls = add_apt(machine, has="openjdk-17-jre-headless")
    machine.add_program("id", "echo 1000")
    done = machine.run("java.sh", "ensure")
    assert done.returncode == 1
    assert "as root, run: apt-get install openjdk-21-jre-headless" in done.stderr
    assert not calls.exists()
    machine.add_program("sudo", 'exec "$@"')
    assert machine.run("java.sh", "ensure").stdout == "/homes/new\n"


def test_without_apt_the_message_names_the_package(machine: Machine) -> None:
    done = machine.run("apt.sh", "python3.11-venv")
    assert done.returncode == 1
    assert (
        "there is no apt-get here; install the equivalent of Debian's python3.11-venv"
        in done.stderr
    )


def test_the_lock_has_one_hash_for_pyspark_and_names_no_registry() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    (pin,) = re.findall(r"^pyspark==.*\n((?:    --hash=.*\n)+)", lock, re.MULTILINE)
    assert pin.count("--hash=sha256:") == 1, (
        "only the source distribution exists; with wheels, setup.sh needs no second step"
    )
    assert "://" not in lock


def test_the_lock_of_the_s3_server_has_hashes_and_names_no_registry() -> None:
    lock = (ROOT / "tests" / "connectors" / "requirements.lock").read_text()
    assert re.search(r"^moto==", lock, re.MULTILINE)
    assert lock.count("--hash=sha256:") >= lock.count("==")
    assert "://" not in lock


def test_the_lock_of_the_browser_driver_has_hashes_and_names_no_registry() -> None:
    lock = (ROOT / "tests" / "console" / "requirements.lock").read_text()
    assert re.search(r"^playwright==", lock, re.MULTILINE)
    assert lock.count("--hash=sha256:") >= lock.count("==")
    assert "://" not in lock
