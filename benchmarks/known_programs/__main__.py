"""Does the head line name the true cause of programs whose truth is known?

python -m benchmarks.known_programs [--runs 10] [--only KIND ...] [--keep DIRECTORY]

Every run of a kind is one experiment on the virtual test-bed, run as ``script/run`` runs it: about 20 s on two idle cores. Directory
var/known-programs (or DIRECTORY) keeps an installation of its own, and results. The status is 1 if an answer names the opposite of
a truth, if fewer than 9 in 10 runs of a kind are right, or if a number of the product contradicts the program's own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks.known_programs.judge import Judgement, contradictions, judge, measured, true_causes, truth_of
from benchmarks.known_programs.kinds import KINDS, Kind, specification
from config.services.lease import ROOT, Installation, embedded_services
from config.supervisor import Supervisor, child_environment, interrupt_on_stop_signals, manage, set_up

SOURCE: Final = Path(__file__).with_name("known.c")
RIGHT: Final = 0.9
LIMIT_S: Final = 300


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--only", nargs="*", choices=KINDS, default=list(KINDS), metavar="KIND")
    parser.add_argument("--keep", type=Path, default=ROOT / "var" / "known-programs")
    options = parser.parse_args()
    interrupt_on_stop_signals()
    directory = options.keep.resolve()
    verdicts: dict[str, Counter[str]] = {name: Counter() for name in options.only}
    wrong_numbers = 0
    with installation(directory / "installation") as environment:
        build(directory)
        for run in range(options.runs):
            for name in options.only:
                result = result_of(KINDS[name], environment, directory, run)
                judgement = judgement_of(KINDS[name], result)
                verdicts[name][judgement.verdict] += 1
                print(line(name, result["answer"], judgement), flush=True)
                trials = measured(result)
                for sentence in chain(contradictions(trials), other_packets(trials, directory)):
                    wrong_numbers += 1
                    print(f"  CONTRADICTED: {sentence}", flush=True)
    print(table(verdicts))
    return 0 if wrong_numbers == 0 and all(map(is_good, verdicts.values())) else 1


@contextmanager
def installation(var: Path) -> Iterator[Mapping[str, str]]:
    """Run services and a worker of our own for the block; yield their environment."""
    os.environ["RANKWIRE_VAR"] = str(var)
    settings = Installation.of_environment()
    with embedded_services(settings) as lease:
        environment = child_environment(settings, lease.state)
        set_up(environment, "--no-demo")
        with Supervisor(settings, environment) as supervisor:
            supervisor.ensure_worker()
            yield environment


def build(directory: Path) -> None:
    """Compile the program into a directory that the users of trials can read."""
    subprocess.run(["mpicc.openmpi", "-O2", "-o", directory / SOURCE.stem, SOURCE], check=True)


def result_of(kind: Kind, environment: Mapping[str, str], directory: Path, run: int) -> dict[str, Any]:
    """Run one experiment of a kind to its end; return its trials and its answer."""
    files = directory / "results"
    files.mkdir(exist_ok=True)
    spec, result = files / f"{kind.name}.yaml", files / f"{kind.name}-{run}.json"
    spec.write_text(yaml.safe_dump(specification(kind, directory / SOURCE.stem)))
    command = manage("run_experiment", str(spec), "--json", str(result))
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    if done.returncode:
        raise SystemExit(f"{kind.name} failed\n{done.stdout}{done.stderr}")
    return dict(json.loads(result.read_text()))


def other_packets(trials: Sequence[Mapping[str, Any]], directory: Path) -> Iterator[str]:
    """Yield the captures of which capinfos counts other packets than the product."""
    for trial in trials:
        capture = directory / "installation" / "trials" / str(trial["id"]) / "capture.pcapng.zst"
        if capture.exists():
            words = ["capinfos", "-T", "-r", "-M", "-c", str(capture)]
            counted = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()[-1]
            if trial["metrics"].get("packets") != float(counted):
                yield f"trial {trial['id']}: {trial['metrics'].get('packets')} packets, by capinfos {counted}"


def judgement_of(kind: Kind, result: Mapping[str, Any]) -> Judgement:
    truth = truth_of(kind, measured(result))
    if kind.causes and (causes := true_causes(kind, truth)) != kind.causes:
        print(f"  {kind.name}: other load made {', '.join(causes)} the cause")
    return judge(kind, result["answer"], truth)


def parts_words(truth: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {seconds:+.3f} s" for name, seconds in truth.items())


def line(name: str, answer: Mapping[str, Any], judgement: Judgement) -> str:
    explains = "" if judgement.explains is None else f" {judgement.explains:.3f} s"
    answered = f"{judgement.part}{explains} [{answer['strength']}]"
    return f"{name}: {judgement.verdict}: {answered}; truth: {parts_words(judgement.truth)}\n  {answer['sentence']}"


def is_good(verdicts: Counter[str]) -> bool:
    return verdicts["OPPOSITE"] == 0 and verdicts["right"] >= RIGHT * verdicts.total()


def table(verdicts: Mapping[str, Counter[str]]) -> str:
    """Return the verdicts by kind as Markdown."""
    names = ("right", "silent", "other", "OPPOSITE")
    rows = [f"| {kind} | {' | '.join(str(counts[name]) for name in names)} |" for kind, counts in verdicts.items()]
    return "\n".join([f"| program | {' | '.join(names)} |", "|---|---|---|---|---|", *rows])


if __name__ == "__main__":
    sys.exit(main())
