"""Facts of an answer: each once, causes first, and their lines for a terminal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from analysis.conclusions import (
    Answer,
    Cause,
    ExperimentQuestion,
    Fact,
    Finding,
    Report,
    answer,
    facts,
    key_figures,
    render,
)
from analysis.conclusions.answer import Figure
from analysis.conclusions.context import Factor
from analysis.conclusions.facts import MOST_CAUSES
from analysis.conclusions.rules.report import Verdict, find
from analysis.scaling import Point, Study
from tests.analysis.conclusions.designs import DELAY, GFLOPS, HOSTS, METHOD, RATE, asks
from tests.analysis.scaling.studies import published_water
from tests.words import plain

SILENT = Answer("scale", "Nothing yet.", "open")


def finding(rule: str, group: Any = "network", explains: float | None = None, **more: Any) -> Finding:
    return Finding(rule, group, f"{rule} is so.", "strong", (), "packets", "Look.", explains=explains, **more)


def merged(
    *findings: Finding,
    slices: tuple[dict[str, Any], ...] = (),
    output: Answer = SILENT,
    question: ExperimentQuestion | None = None,
) -> list[Fact]:
    verdict = Verdict("limited", "Limited.")
    report = Report("", verdict, findings, (), slices=tuple(Report("", verdict, (), (), where=part) for part in slices))
    return list(facts(question or asks([HOSTS, METHOD], {(1, "pull"): 1.0}), output, report))


def test_causes_come_first_by_what_they_explain() -> None:
    output = merged(finding("sizes", "traffic"), finding("small", explains=0.2), finding("large", explains=0.6))
    assert [fact.rule for fact in output] == ["large", "small", "sizes"]
    assert [fact.fold for fact in output] == ["cause", "cause", "traffic"]


def test_at_most_five_causes_are_shown() -> None:
    many = [finding(f"cause_{n}", explains=0.9 - n / 100) for n in range(MOST_CAUSES + 2)]
    output = merged(*many)
    assert [fact.fold for fact in output] == ["cause"] * MOST_CAUSES + ["run"] * 2
    result = replace(SILENT, causes=(Cause("2 s are waiting", 2.0, "s"), Cause("1 s is computing", 1.0, "s")))
    assert sum(fact.fold == "cause" for fact in merged(*many, output=result)) == MOST_CAUSES - 2


def test_slices_say_a_fact_once_with_the_range_over_which_it_holds() -> None:
    slices = tuple({"method": method} for method in ("pull", "tree", "multicast"))
    weak, strong = (finding("waits", explains=e, where={"method": m}) for e, m in ((0.2, "pull"), (0.5, "tree")))
    output = merged(weak, strong, slices=slices)
    assert [(fact.statement, fact.at) for fact in output] == [("waits is so.", "tree; also for pull")]
    everywhere = merged(*(finding("sizes", "traffic", where=where) for where in slices), slices=slices)
    assert [fact.at for fact in everywhere] == [""]


def test_a_slice_of_several_parameters_counts_the_others() -> None:
    slices = tuple({"link.delay": delay, "method": method} for delay in (0.0, 0.004) for method in ("pull", "tree"))
    question = asks([DELAY, METHOD], {(0.0, "pull"): 1.0})
    output = merged(
        *(finding("waits", explains=0.3, where=where) for where in slices[1:]), slices=slices, question=question
    )
    assert plain(output[0].at) == "0 ms delay, tree; also for 2 of 3 others"


def test_the_text_of_a_study_begins_with_its_answer_and_ends_with_what_is_not_known() -> None:
    study = published_water()
    report = find(study)
    question = asks([HOSTS], {p.parameters["hosts"]: p.values["elapsed_s"][0] for p in study.points}, published=True)
    question = replace(question, points=study.points)
    result = answer(question)
    lines = [plain(line) for line in render(result, facts(question, result, report), report.cannot_tell)]
    assert lines[:2] == ["Where should I stop, and why?", lines[1]]
    assert lines[1].startswith("As printed: Stop at 4 hosts: 200 s.")
    assert "More on the run:" in lines
    assert lines.index("More on the traffic:") > 2
    assert lines[-1].startswith("- ")
    assert max(map(len, lines)) <= 100


def test_key_figures_name_the_places_that_distinguish_them() -> None:
    question = asks([HOSTS], {1: 8.0, 2: 4.0, 4: 6.0})
    output = dict(key_figures(answer(question), question.factors))
    assert output["Best size"] == "2 hosts"
    assert plain(output["Elapsed time"]).startswith("1 host: 8 s (")
    assert plain(output["Times the best"]).startswith("1 host: 2 times (")


@pytest.mark.parametrize(
    ("high", "words"), [(57.0, "8 s (1.2 to 57 s)"), (2000.0, "8 s (scatter too large for an interval)")]
)
def test_key_figures_give_a_wide_interval_and_refuse_one_of_no_meaning(high: float, words: str) -> None:
    question = asks([HOSTS], {1: 8.0, 2: 4.0})
    wide = replace(answer(question), figures=(Figure("Elapsed time", 8.0, "s", 1.2, high, {"hosts": 1}),))
    assert [plain(value) for _, value in key_figures(wide, question.factors)] == [words]


def test_key_figures_of_a_rate_are_below_one_if_they_are_worse() -> None:
    question = asks([HOSTS], {1: 4.0, 2: 8.0, 4: 6.0}, deciding=GFLOPS)
    output = dict(key_figures(answer(question), question.factors, is_rate=True))
    assert plain(output["Times the best rate"]).startswith("1 host: 0.5 times (0.4")


def test_the_best_size_is_that_of_the_median_if_others_may_be_as_good() -> None:
    question = asks([HOSTS], {1: 8.0, 2: 4.0, 4: 3.98})
    output = dict(key_figures(answer(question), question.factors))
    assert "Best size" not in output
    assert output["Best median"] in ("2 hosts", "4 hosts")
    assert output["Not measurably worse"] in ("2 hosts", "4 hosts")


FACTORS = {
    "every ratio is possible": ("factor of rate", 6.9, 0.0075, 5000.0, "not known yet: measure down to 25 Mbit/s"),
    "with the others harshest": (
        "factor of rate, others harshest", 2.0, 0.01, 1200.0, "not known yet: measure down to 25 Mbit/s"
    ),
    "a delay": ("factor of delay", 1.2, 0.0001, 1e4, "not known yet: measure up to 2 ms"),
    "only the least is reported": ("factor of rate", 400.0, 2.1, 5e4, "at least 2.1 times"),
    "only the most is reported": ("factor of rate", 1.1, 0.01, 140.0, "at most 140 times"),
    "both are reported": ("factor of rate", 6.9, 5.0, 8.0, "6.9 times (5 to 8)"),
    "no property of a network": ("factor of method", 2.0, 0.001, 3000.0, "not known yet: more repetitions are needed"),
}  # fmt: skip


@pytest.mark.parametrize("case", FACTORS)
def test_a_factor_whose_interval_spans_everything_says_what_is_known_and_where_to_ask(case: str) -> None:
    name, ratio, low, high, words = FACTORS[case]
    where = {"link.bandwidth": 50e6, "link.delay": 1e-3}
    output = key_figures(Answer("network", "", "open", (Figure(name, ratio, "1", low, high, where),)), [DELAY, RATE])
    assert [plain(value) for _, value in output] == [words]


def test_a_program_of_server_and_clients_is_not_called_uneven() -> None:
    points = [
        Point(
            {"hosts": n},
            {"elapsed_s": [4.0, 4.1, 3.9], "cpu_imbalance": [1.2, 1.2, 1.2], "cpu_mean_rank_s": [2.0, 2.0, 2.0]},
        )
        for n in (2, 4)
    ]
    assert "load_imbalance" in {f.rule for f in find(Study(points)).findings}
    assert "load_imbalance" not in {f.rule for f in find(Study(points, ranks_alike=False)).findings}


def test_equal_edges_of_a_ring_are_not_concentrated() -> None:
    ring = [[0.0] * 8 for _ in range(8)]
    for rank in range(8):
        ring[rank][(rank + 1) % 8] = 1e6
    matrix = {"labels": [f"10.0.0.{n}" for n in range(8)], "wire_bytes": ring}

    def rules(table: list[list[float]]) -> set[str]:
        point = Point({"hosts": 8}, {"elapsed_s": [1.0, 1.0, 1.0]}, host_matrix={**matrix, "wire_bytes": table})
        return {f.rule for f in find(Study([point])).findings}

    assert "matrix_skew" not in rules(ring)
    heavier = [row[:] for row in ring]
    heavier[0][1] = 1e7
    assert "matrix_skew" in rules(heavier)


def test_a_sentence_names_what_varies_and_never_a_constant_number_of_hosts() -> None:
    points = [Point({"hosts": 3, "link.delay": d}, {"elapsed_s": [5.0 + d, 9.0, 5.1]}) for d in (0.0, 0.004, 0.016)]
    study = Study(points, describe=lambda point: f"{1000 * point.parameters['link.delay']:g} ms")
    statements = [f.statement for f in find(study).findings]
    assert statements
    assert not any("3 hosts" in statement for statement in statements)
    assert any(" at " in statement and " ms" in statement for statement in statements)


def test_a_key_figure_of_one_slice_names_its_place() -> None:
    sizes = [Factor("message_bytes", "message", "message", "B"), Factor("hosts", "hosts", "scale", "", "hosts")]
    where = [{"message_bytes": 1024}, {"message_bytes": 65536}]
    best = [Figure("best size", 2.0, "hosts", where=at) for at in where]
    figures = (*best, Figure("as good", 4.0, "hosts", where=where[1]))
    rows = key_figures(Answer("scale", "", "firm", figures), sizes)
    assert [value for _, value in rows] == ["1 KiB: 2 hosts; 64 KiB: 2 hosts", "64 KiB: 4 hosts"]
    alone = Answer("scale", "", "firm", (Figure("as good", 4.0, "hosts"),))
    assert key_figures(alone, sizes)[0][1] == "4 hosts"
