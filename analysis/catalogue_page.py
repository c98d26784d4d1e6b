"""docs/metrics.md from the catalogue: ``python -m analysis.catalogue_page > docs/metrics.md``."""

from __future__ import annotations

from typing import Final

from analysis.catalogue import METRICS, SECTION_TITLES, Metric

_HEAD: Final = """# Metric catalogue

Generated from `analysis/catalogue.py` by `python -m analysis.catalogue_page > docs/metrics.md`; a test fails when they differ.

A metric that cannot be computed is absent, with a reason (`not_available`); it is never 0 and never guessed. Every metric
of the sections *Volume and rate*, *Inter-arrival* and *TCP* exists for all traffic and for MPI traffic. **Bold** labels are
the six headline metrics of the published tables. A `share` is stored as a ratio and shown in per cent. The source names the
tool or paper whose definition is met.
"""


def page() -> str:
    """The whole page as Markdown."""
    blocks = [_HEAD]
    for section, title in SECTION_TITLES.items():
        rows = [_row(metric) for metric in METRICS.values() if metric.section == section]
        header = "| id | label | unit | better | definition | source |\n|---|---|---|---|---|---|"
        blocks.append(f"## {title}\n\n{header}\n" + "\n".join(rows) + "\n")
    return "\n".join(blocks)


def _row(metric: Metric) -> str:
    label = f"**{metric.label}**" if metric.headline else metric.label
    better = "" if metric.direction == "neutral" else metric.direction
    cells = (f"`{metric.id}`", label, metric.unit, better, metric.definition, metric.source)
    return "| " + " | ".join(text.replace("|", "\\|") for text in cells) + " |"


if __name__ == "__main__":
    print(page(), end="")
