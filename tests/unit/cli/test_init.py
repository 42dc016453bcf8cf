"""`muntin init`: the project that it writes passes its own test and check."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from muntin.cli.app import app
from muntin.cli.project_files import RUN_ONCE, write_project
from muntin.errors import InputError
from muntin.testing.golden import Register, read_script


def written(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in write_project(folder)}


def test_the_project_has_a_script_data_a_test_and_a_readme(tmp_path: Path) -> None:
    assert written(tmp_path / "new") == {
        "README.md", "app.sql", "unpaid.cqt",
        "data/orders/1.json", "data/orders/2.json",
        "data/payments/1.json", "data/payments/2.json",
    }  # fmt: skip


def test_its_commands_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    for command in (["check", "app.sql"], ["test", "unpaid.cqt"], ["explain", "app.sql"]):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, (command, result.output)


def test_its_readme_names_the_command_that_init_prints(tmp_path: Path) -> None:
    write_project(tmp_path)
    assert RUN_ONCE in (tmp_path / "README.md").read_text()


def test_its_test_is_about_the_query_of_its_script(tmp_path: Path) -> None:
    write_project(tmp_path)
    text = " ".join((tmp_path / "app.sql").read_text().split())
    script = read_script((tmp_path / "unpaid.cqt").read_text(), "unpaid.cqt")
    (query,) = [step.action for step in script.steps if isinstance(step.action, Register)]
    assert " ".join(query.sql.split()) in text


def test_a_folder_with_files_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="is not an empty folder"):
        write_project(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot be written|is not an empty folder"):
        write_project(tmp_path / "file" / "project")


def test_init_prints_the_files_and_what_comes_next(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["init", str(tmp_path / "shop")])
    assert result.exit_code == 0
    assert str(tmp_path / "shop" / "app.sql") in result.output
    assert RUN_ONCE in result.output
