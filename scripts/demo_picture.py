"""Run the demo and write its second act to docs/demo.svg, the picture of the README."""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console, RenderableType
from rich.terminal_theme import MONOKAI

from muntin.cli.demo import run_demo

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "demo.svg"
_COLUMNS = 120
_SECONDS = 10.0
_RATE = 400


def save(shown: RenderableType) -> None:
    """Write the screen as SVG in a monospaced font of the reader; no font is downloaded."""
    console = Console(
        record=True,
        width=_COLUMNS,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
    )
    console.print(shown)
    form = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    form = re.sub(r"<!--.*?-->", "", form).replace("Fira Code, monospace", "monospace")
    PICTURE.write_text(
        console.export_svg(title="muntin demo", theme=MONOKAI, code_format=form, unique_id="demo"),
        encoding="utf-8",
    )
    print(f"written to {PICTURE.name}")


if __name__ == "__main__":
    run_demo(_SECONDS, _RATE, save)
