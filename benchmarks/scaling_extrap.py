"""Record Extra-P's results on its own examples, for test_pmnf.py.

Extra-P needs numpy 1 and a Qt toolkit, so it cannot live in the environment of the project. To record again:

    python3 -m venv DIR && DIR/bin/pip install extrap && DIR/bin/python -m benchmarks.scaling_extrap

The measurements in scaling_extrap.json are those of Extra-P's own test data (BSD-3-Clause, TU Darmstadt), named by their file there;
"formula" examples are made here from the function in their name. Only "extrap" and "version" are rewritten.
"""

from __future__ import annotations

import json
import warnings
from importlib.metadata import version
from pathlib import Path

from extrap.entities.callpath import Callpath  # type: ignore[import-not-found]
from extrap.entities.coordinate import Coordinate  # type: ignore[import-not-found]
from extrap.entities.measurement import Measurement  # type: ignore[import-not-found]
from extrap.entities.metric import Metric  # type: ignore[import-not-found]
from extrap.modelers.single_parameter.basic import SingleParameterModeler  # type: ignore[import-not-found]

RECORD = Path(__file__).with_name("scaling_extrap.json")


def model(x: list[float], values: list[list[float]]) -> dict[str, object]:
    """Return function and terms ([power, logs]) of Extra-P's basic modeler."""
    modeler = SingleParameterModeler()
    modeler.allow_negative_exponents = True
    measured = [
        Measurement(Coordinate(size), Callpath("all"), Metric("value"), repetitions)
        for size, repetitions in zip(x, values, strict=True)
    ]
    function = modeler.create_model(measured).hypothesis.function
    terms = []
    for compound in function.compound_terms:
        exponents = {term.term_type: float(term.exponent) for term in compound.simple_terms}
        terms.append([exponents.get("polynomial", 0.0), exponents.get("logarithm", 0.0)])
    return {"function": str(function), "terms": terms}


def main() -> None:
    warnings.filterwarnings("ignore")
    record = json.loads(RECORD.read_text())
    record["version"] = version("extrap")
    for example in record["examples"]:
        example["extrap"] = model(example["x"], example["values"])
        print(example["name"], example["extrap"])
    lines = ",\n  ".join(json.dumps(example) for example in record["examples"])
    RECORD.write_text(
        f'{{"version": "{record["version"]}", "source": {json.dumps(record["source"])}, "examples": [\n  {lines}\n]}}\n'
    )


if __name__ == "__main__":
    main()
