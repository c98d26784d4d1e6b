"""A contact sheet of every page in its four forms."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Final

_HEAD: Final = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Pages of Rankwire</title>
<style>
body { font: 14px system-ui, sans-serif; margin: 16px; background: #888; }
section { display: grid; grid-template-columns: 3fr 3fr 1fr 1fr; gap: 12px; align-items: start; margin-bottom: 32px; }
h2 { grid-column: 1 / -1; margin: 0; }
a { display: block; max-height: 900px; overflow: hidden; }
img { width: 100%; display: block; }
pre { background: #fff; padding: 12px; white-space: pre-wrap; }
</style>
<h1>Pages of Rankwire</h1>
"""


def write_sheet(pictures: Sequence[tuple[str, Sequence[Path]]], page_errors: Sequence[str], to: Path) -> Path:
    """Write index.html next to the pictures; a click opens one in full size."""
    parts = [_HEAD]
    if page_errors:
        parts.append(f"<pre>{escape(chr(10).join(page_errors))}</pre>\n")
    for name, files in pictures:
        figures = "".join(
            f'<a href="{escape(file.name)}"><img src="{escape(file.name)}" alt="{escape(file.stem)}" loading="lazy"></a>\n'
            for file in files
        )
        parts.append(f"<section>\n<h2>{escape(name)}</h2>\n{figures}</section>\n")
    file = to / "index.html"
    file.write_text("".join(parts))
    return file
