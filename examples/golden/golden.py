"""Run a golden script from Python under several settings; the results must be the same."""

from __future__ import annotations

import sys
from pathlib import Path

from muntin.testing import run_file

SCRIPT = Path(__file__).with_name("payments.cqt")
SETTINGS: tuple[dict[str, object], ...] = (
    {},
    {"join": "nested_loop"},
    {"algorithm": "lazy"},
    {"expiry": "lazy", "expiry_interval": "1 hour"},
)


def main() -> None:
    """Print the outcome of each run; exit with 1 if one failed."""
    reports = [run_file(SCRIPT, settings=settings) for settings in SETTINGS]
    for settings, report in zip(SETTINGS, reports, strict=True):
        print(f"{settings or 'defaults'}: {'ok' if report.ok else report}")
    sys.exit(any(not report.ok for report in reports))


if __name__ == "__main__":
    main()
