"""Plotly and Tabler without their unused parts, made from npm packages.

    python -m config.front_end

script/bootstrap runs it before collectstatic. Results are in build/, and change only with their sources.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
NODE_MODULES: Final = ROOT / "node_modules"
BUILT: Final = ROOT / "build"
PLOTLY: Final = NODE_MODULES / "plotly.js-cartesian-dist" / "plotly-cartesian.js"
TABLER: Final = NODE_MODULES / "@tabler" / "core" / "dist" / "css" / "tabler.min.css"
UNUSED_MODULES: Final = (
    *("lib/box.js", "lib/histogram.js", "lib/histogram2d.js", "lib/histogram2dcontour.js", "lib/image.js"),
    *("lib/pie.js", "lib/scatterternary.js", "lib/violin.js", "lib/calendars.js"),
    *("src/components/annotations3d/index.js", "src/components/images/index.js"),
    *("src/components/rangeselector/index.js", "src/components/rangeslider/index.js"),
    *("src/components/sliders/index.js", "src/components/updatemenus/index.js"),
    "node_modules/maplibre-gl/dist/maplibre-gl.css",
)
"""Kinds of traces and components of Plotly that no page uses, and a style sheet of maps."""
CLASS_SOURCES: Final = (
    ("templates", "*.html"),
    ("static", "*.js"),
    ("dashboard", "*.py"),
    ("experiments/models", "*.py"),
)
"""Files that name the classes of elements."""
_MODULE: Final = re.compile(r'^  var (require_\w+) = __commonJS\(\{\n    "([^"]+)"', re.MULTILINE)
_BEGIN: Final = "var Plotly = (() => {\n"
_END: Final = re.compile(r"^  return (require_index_cartesian\(\));\n\}\)\(\);\n", re.MULTILINE)
_CSS_PIECE: Final = re.compile(r"""/\*.*?\*/|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[{};]|[^{};"'/]+|/""", re.DOTALL)
_NESTING: Final = ("@media", "@supports", "@container", "@layer")
_ARGUMENT: Final = re.compile(r"\((?:[^()]|\([^()]*\))*\)|\[[^\]]*\]")
_CLASS: Final = re.compile(r"\.((?:\\.|[\w-])+)")


def main() -> None:
    BUILT.mkdir(exist_ok=True)
    words = words_of(path for folder, pattern in CLASS_SOURCES for path in (ROOT / folder).rglob(pattern))
    _write(BUILT / "tabler.css", used_rules(TABLER.read_text(), words))
    _write(BUILT / "plotly.js", minified(without_modules(PLOTLY.read_text(), UNUSED_MODULES)))


def _write(path: Path, text: str) -> None:
    """Write a changed file only: collectstatic copies files by their times."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def without_modules(bundle: str, paths: tuple[str, ...]) -> str:
    """Return a bundle of Plotly as a module that does not require ``paths``.

    Unreachable modules are marked so that esbuild leaves them out. Raises ValueError if the bundle has another form.
    """
    names = {path: name for name, path in _MODULE.findall(bundle)}
    for path in paths:
        # Alone on its line: registered, but used by no other module.
        bundle, count = re.subn(rf"^ *{names[path]}\(\)[,;]?\n", "", bundle, flags=re.MULTILINE)
        if not count:
            raise ValueError(f"Plotly does not register {path}")
    bundle = _MODULE.sub(lambda match: match[0].replace("__commonJS", "/* @__PURE__ */ __commonJS"), bundle)
    heading, _, rest = bundle.partition(_BEGIN)
    end = _END.search(rest)
    if end is None:
        raise ValueError("Plotly's bundle does not end as expected")
    licence = heading[: heading.index("*/") + 2].replace("/**", "/*!", 1)
    notices = rest[end.end() :].partition("*/")[0] + "*/\n"
    return f"{licence}\n{rest[: end.start()]}window.Plotly = {end[1]};\n{notices}"


def minified(module: str) -> str:
    """Return a module as a minified script."""
    (program,) = NODE_MODULES.glob("@esbuild/*/bin/esbuild")
    options = (
        "--bundle",
        "--minify",
        "--format=iife",
        "--target=es2022",
        "--legal-comments=inline",
        "--log-level=error",
    )
    return subprocess.run([program, *options], input=module, capture_output=True, check=True, text=True).stdout


def words_of(paths: Iterator[Path]) -> set[str]:
    """Return every word of these files: among them are all classes of elements."""
    return {word for path in paths for word in re.findall(r"[\w-]+", path.read_text())}


def used_rules(css: str, classes: Set[str]) -> str:
    """Return a style sheet without the selectors of other classes.

    Arguments of pseudo-classes are not judged, and at-rules without selectors stay.
    """
    return "".join(_used(css, classes))


def _used(css: str, classes: Set[str]) -> Iterator[str]:
    for prelude, block in _statements(css):
        if block is None:
            yield prelude
        elif prelude.startswith(_NESTING):
            if rules := used_rules(block, classes):
                yield f"{prelude}{{{rules}}}"
        elif prelude.lstrip().startswith("@"):
            yield f"{prelude}{{{block}}}"
        elif selectors := [selector for selector in _selectors(prelude) if _classes(selector) <= classes]:
            yield f"{','.join(selectors)}{{{block}}}"


def _statements(css: str) -> Iterator[tuple[str, str | None]]:
    """Yield preludes with their blocks; comments and statements have none."""
    prelude, block, depth = "", "", 0
    for piece in _CSS_PIECE.findall(css):
        if depth == 0 and piece == "{":
            depth = 1
        elif depth == 0 and (piece == ";" or piece.startswith("/*")):
            yield prelude + piece, None
            prelude = ""
        elif depth == 0:
            prelude += piece
        elif depth == 1 and piece == "}":
            yield prelude, block
            prelude, block, depth = "", "", 0
        else:
            depth += (piece == "{") - (piece == "}")
            block += piece


def _selectors(prelude: str) -> list[str]:
    """Return the selectors of a list; commas within arguments separate none."""
    places = [match.start() for match in re.finditer(",", _ARGUMENT.sub(lambda m: "_" * len(m[0]), prelude))]
    return [prelude[begin + 1 : end] for begin, end in zip([-1, *places], [*places, len(prelude)], strict=True)]


def _classes(selector: str) -> set[str]:
    return {re.sub(r"\\(.)", r"\1", name) for name in _CLASS.findall(_ARGUMENT.sub("", selector))}


if __name__ == "__main__":
    main()
