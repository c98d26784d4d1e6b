"""The table of efficiencies by size: products, colours, only with profiles."""

import re

import pytest
from django.urls import reverse

from analysis.catalogue import METRICS
from dashboard.panels.parts import Measured
from dashboard.panels.parts.inside_mpi import inside_mpi_part
from tests.dashboard.api.clients import EXPERIMENTS
from tests.dashboard.studies_measured import LADDER, NETWORK, SIZES, measured, needing, profiled, solve
from tests.dashboard.texts import words_of


def test_it_shows_the_tree_by_size(page, library):
    words = words_of(page, measured(library, SIZES, profiled))
    assert "Inside MPI: time of the ranks" in words
    assert "Global efficiency 100 % 75.6 % 40 %" in words
    assert "Parallel efficiency 100 % 85 % 55 %" in words
    assert "Computation scalability 100 % 88.9 % 72.7 %" in words
    assert "Serialisation and transfer need ideal-network runs" in words
    assert "Profiling overhead: at most 0.2 % of the time" in words
    assert "In MPI, off the CPU 10 % 10 % 10 %" in words


def test_its_definitions_name_metrics_by_their_labels(page, library):
    context = page.get(reverse("experiment-parts", args=[measured(library, SIZES, profiled).slug])).context
    lines = [line["definition"] for part in context["parts"] for line in part.context["definitions"]]
    assert any("“Load balance”" in line for line in lines)
    assert not set(METRICS) & {word for line in lines for word in re.findall(r"[a-z_]+", line)}


def test_it_follows_the_network_question(page, library):
    experiment = measured(library, NETWORK, lambda parameters: {**profiled(parameters), **needing(parameters)})
    context = page.get(reverse("experiment-parts", args=[experiment.slug])).context
    assert (context["opening"].element, context["parts"][0].element) == ("grid", "inside-mpi")


def test_it_draws_the_tree_over_the_ranks(page, library):
    context = page.get(reverse("experiment-parts", args=[measured(library, SIZES, profiled).slug])).context
    figure = context["parts"][0].context["tables"][0]["chart"]
    medians = {trace["name"]: trace["y"] for trace in figure["data"] if "lines" in trace["mode"]}
    assert medians["Communication efficiency"] == pytest.approx([100, 85, 55])
    assert medians["Global efficiency"] == pytest.approx([100, 100 * 0.85 * 8 / 9, 40])


def test_rest_has_the_same_numbers(page, library):
    slug = measured(library, SIZES, profiled).slug
    (table,) = page.get(f"{EXPERIMENTS}{slug}/efficiencies/").json()["tables"]
    assert [(size["hosts"], size["trials"]) for size in table["sizes"]] == [(1, 1), (2, 1), (4, 1)]
    two = table["sizes"][1]
    assert two["mpi_parallel_efficiency"] == pytest.approx(0.85)
    assert two["computation_scalability"] == pytest.approx(8 / 9)
    assert two["global_efficiency"] == pytest.approx(0.85 * 8 / 9)
    assert (two["mpi_transfer_efficiency"], two["mpi_profile_cost_share"]) == (None, 0.002)


def counted(parameters):
    """Twice the instructions on each doubling; 80 % of the time is on a core."""
    hosts, useful_s = parameters["hosts"], 8.0 + parameters["hosts"] - 1
    counts = {
        "processor_instructions": 1e10 * hosts,
        "processor_cycles": 5e9 * hosts,
        "processor_cpu_s": 0.8 * useful_s,
    }
    return {**profiled(parameters), **counts}


def test_it_divides_computation_scalability_if_processors_were_counted(page, library):
    experiment = measured(library, SIZES, counted)
    words = words_of(page, experiment)
    assert "Instruction scalability 100 % 50 % 25 %" in words
    assert "IPC scalability 100 % 100 % 100 %" in words
    assert "Core scalability 100 % 100 % 100 %" in words
    (table,) = page.get(f"{EXPERIMENTS}{experiment.slug}/efficiencies/").json()["tables"]
    four = table["sizes"][2]
    product = four["instruction_scalability"] * four["ipc_scalability"] * four["frequency_scalability"]
    assert product * four["core_scalability"] == pytest.approx(four["computation_scalability"])
    assert "Instruction scalability" not in words_of(page, measured(library, SIZES, profiled))


def test_it_colours_what_asks_for_attention(page, library):
    experiment = measured(library, SIZES, profiled)
    html = page.get(reverse("experiment-parts", args=[experiment.slug])).content.decode()
    row = next(part for part in html.split("<tr") if ">Parallel efficiency<" in part)
    assert re.findall(r"tone (ok|warn|bad)", row) == ["ok", "ok", "bad"]


def test_efficiencies_of_a_benchmark_of_messages_have_no_colours(page, library):
    ring = {**SIZES, "workload": "ring", "parameters": {}, "sweep": {"hosts": [2, 4]}}
    experiment = measured(library, ring, profiled)
    html = page.get(reverse("experiment-parts", args=[experiment.slug])).content.decode()
    assert "Parallel efficiency" in html
    assert not re.findall(r"tone (ok|warn|bad)", html)
    assert "Red: below" not in html


@pytest.mark.parametrize(("descheduled", "tones"), [(0.3, ["ok", "ok", ""]), (0.1, ["ok", "ok", "bad"])])
def test_communication_is_not_to_improve_if_ranks_lack_cores(page, library, descheduled, tones):
    def values(parameters):
        return {
            **profiled(parameters),
            "mpi_descheduled_inside_share": descheduled if parameters["hosts"] == 4 else 0.0,
        }

    context = page.get(reverse("experiment-parts", args=[measured(library, SIZES, values).slug])).context
    lines = {line["name"]: line for line in context["parts"][0].context["tables"][0]["lines"]}
    assert [cell["tone"] for cell in lines["mpi_communication_efficiency"]["cells"]] == tones
    assert context["parts"][0].context["lacks_cores"] is (tones[-1] == "")


def test_no_free_core_is_explained_whichever_table_names_it(library):
    def values(parameters):
        share = 0.3 if (parameters["hosts"], parameters["molecules"]) == (4, 64) else 0.0
        return {**profiled(parameters), "mpi_descheduled_inside_share": share}

    two_tables = {**SIZES, "parameters": {}, "sweep": {"hosts": [1, 2, 4], "molecules": [64, 512]}}
    part = inside_mpi_part(Measured.of(measured(library, two_tables, values)), {})
    assert (len(part["tables"]), part["lacks_cores"]) == (2, True)


def test_it_stays_away_where_nothing_was_counted(page, library):
    assert "Inside MPI" not in words_of(page, measured(library, LADDER, solve))
