"""The ``muntin`` command: results on stdout, progress on stderr, exit codes 0 done, 1 failed, 2 wrong input."""

import atexit
import signal
import sys


def main() -> None:
    """Run the command line, or name the extra that it needs.

    Ctrl-C ends it without a traceback, also while Python imports its modules.
    """
    try:
        from muntin.cli.app import main as run  # noqa: PLC0415 (takes seconds, and its libraries are optional)
    except KeyboardInterrupt:
        sys.exit(130)
    except ModuleNotFoundError as error:
        if error.name not in {"typer", "rich"}:
            raise
        sys.exit(f"error: the command line needs {error.name}. Run: pip install 'muntin[cli]'")
    try:
        run()
    finally:
        # What ends from here on must not be interrupted half-way.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


__all__ = ["main"]
