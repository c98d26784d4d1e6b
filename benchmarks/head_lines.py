"""Head lines of finished experiments beside the medians that they rest on, worked out again from the exported JSON in plain Python.

python -m benchmarks.head_lines RESULT.json FINDINGS.json [RESULT.json FINDINGS.json ...]

RESULT is what ``script/run SPEC --json RESULT`` writes, FINDINGS what ``script/manage findings SLUG --json`` prints. The status is 1 where
a figure of the answer is not what the trials give. Nothing of ``analysis`` is used.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from math import isclose
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any, Final

DECIDES: Final = {
    "water": ("water.loop_time_s", "s", min),
    "pingpong": ("pingpong.transfer_time_s", "s", min),
    "concurrent-readers": ("concurrent-readers.job_wall_s", "s", min),
    "hpl": ("hpl.gflops", "GFLOP/s", max),
    "data-staging": ("data-staging.run_s", "s", min),
}
Point = tuple[tuple[str, Any], ...]


def points_of(result: Mapping[str, Any]) -> dict[Point, list[float]]:
    """Return the deciding metric's values by the parameters that vary, in the order of the design."""
    metric, _, _ = DECIDES[result["experiment"]["workload"]]
    trials = [t for t in result["trials"] if t["state"] == "finished" and t["kind"] == "measured" and not t["apart"]]
    names = [n for n in trials[0]["parameters"] if len({repr(t["parameters"][n]) for t in trials}) > 1]
    points: dict[Point, list[float]] = defaultdict(list)
    for trial in trials:
        points[tuple((name, trial["parameters"][name]) for name in names)].append(trial["metrics"][metric])
    return dict(points)


def disagreements(
    points: Mapping[Point, list[float]], answer: Mapping[str, Any], unit: str, pick: Any
) -> Iterator[str]:
    """Yield the figures of the answer that the trials do not give; those of other metrics are passed over."""
    typical = {point: geometric_mean(values) for point, values in points.items()}
    rows = list(typical)
    for figure in answer["figures"]:
        name, value, where = figure["name"], figure["value"], figure["where"]
        at = [p for p in rows if all(where.get(n, v) == v for n, v in p)]
        expected: Any = value
        if name == "best size":
            expected = dict(pick(rows, key=typical.__getitem__))["hosts"]
        elif name == "enough":
            expected = min(f["value"] for f in answer["figures"] if f["name"] in ("best size", "as good"))
        elif name == "best step":
            expected = 1 + rows.index(pick(rows, key=typical.__getitem__))
        elif name == "gain" and where.get("over") is not None:
            step, over = (typical[rows[int(where[k]) - 1]] for k in ("step", "over"))
            expected = step / over
        elif name == "times the best" and len(at) == 1:
            scale = [
                p for p in rows if "hosts" not in where or dict(p).get("hosts") == where["hosts"] or len(where) == 1
            ]
            ratio = typical[at[0]] / typical[pick(scale, key=typical.__getitem__)]
            expected = ratio if pick is min else 1 / ratio
        elif name.startswith("factor of "):
            expected = _factor(typical, name.removeprefix("factor of ").partition(",")[0], at[0], pick)
        elif len(at) == 1 and figure["unit"] == unit:
            expected = typical[at[0]]
        same = isclose(expected, value, rel_tol=1e-6) if isinstance(value, float) else expected == value
        if not same:
            yield f"{name} {dict(where)}: {value} in the answer, {expected} from the trials"


def _factor(typical: Mapping[Point, float], label: str, costliest: Point, pick: Any) -> float:
    """How many times worse the costliest level of a network factor is than the best one, everything else the same."""
    name = f"link.{label.replace(' ', '_').replace('rate', 'bandwidth')}"
    others = [(n, v) for n, v in costliest if n != name]
    row = [p for p in typical if [(n, v) for n, v in p if n != name] == others]
    ratio = typical[costliest] / typical[pick(row, key=typical.__getitem__)]
    return ratio if pick is min else 1 / ratio


def table(points: Mapping[Point, list[float]]) -> str:
    """Return the medians with their ranges, a line of Markdown per point."""
    rows = []
    for point, values in points.items():
        place = ", ".join(f"{name.removeprefix('link.')} {value}" for name, value in point)
        rows.append(f"| {place} | {len(values)} | {median(values):.4g} | {min(values):.4g} to {max(values):.4g} |")
    return "\n".join(["| point | trials | median | range |", "|---|---|---|---|", *rows])


def main(files: list[str]) -> int:
    wrong = 0
    for result_file, findings_file in zip(files[::2], files[1::2], strict=True):
        result, findings = (json.loads(Path(f).read_text()) for f in (result_file, findings_file))
        metric, unit, pick = DECIDES[result["experiment"]["workload"]]
        answer, points = findings["answer"], points_of(result)
        print(f"### {result['experiment']['name']}\n\n> {answer['sentence']} [{answer['strength']}]\n")
        print(*(f"- {cause['statement']}" for cause in answer["causes"]), sep="\n")
        print(f"\n`{metric}`:\n\n{table(points)}\n")
        for sentence in disagreements(points, answer, unit, pick):
            wrong += 1
            print(f"DISAGREES: {sentence}")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
