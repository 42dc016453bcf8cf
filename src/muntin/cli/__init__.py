"""The ``muntin`` command: results on stdout, progress on stderr, exit codes 0 done, 1 failed, 2 wrong input."""

from muntin.cli.app import main

__all__ = ["main"]
