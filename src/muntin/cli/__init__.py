"""The ``muntin`` command.

Results go to stdout, progress to stderr. Exit codes: 0 success, 1 failure, 2 invalid input.
"""

import atexit
import signal
import sys


def main() -> None:
    """Run the command line, or name the missing extra.

    Ctrl-C ends it without a traceback, even during imports.
    """
    try:
        from muntin.cli.app import main as run  # noqa: PLC0415 (slow, libraries are optional)
    except KeyboardInterrupt:
        sys.exit(130)
    except ModuleNotFoundError as error:
        if error.name not in {"typer", "rich"}:
            raise
        sys.exit(f"error: the command line needs {error.name}. Run: pip install 'muntin[cli]'")
    try:
        run()
    finally:
        # Cleanup at exit must not be interrupted.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


__all__ = ["main"]
