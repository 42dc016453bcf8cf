"""The ``muntin`` command: results on stdout, progress on stderr, exit codes 0 done, 1 failed, 2 wrong input."""

import sys


def main() -> None:
    """Run the command line, or name the extra that it needs."""
    try:
        from muntin.cli.app import main as run  # noqa: PLC0415 (its libraries are optional)
    except ModuleNotFoundError as error:
        if error.name not in {"typer", "rich"}:
            raise
        sys.exit(f"error: the command line needs {error.name}. Run: pip install 'muntin[cli]'")
    run()


__all__ = ["main"]
