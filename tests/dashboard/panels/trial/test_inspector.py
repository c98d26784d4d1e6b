"""The packet inspector, environment, observer effect and 2011 figures of a trial."""

import re
import subprocess
from html import unescape

import pytest
from django.http import QueryDict
from django.urls import reverse

from dashboard.panels.trial.packets import PacketQuery
from dashboard.panels.trial.siblings import environment_comparison
from experiments.files import ANALYSIS_NAME, trial_directory, write_analysis
from experiments.models import Artifact, Environment, Trial
from tests.analysis.capture_files import Frame, pcapng
from tests.analysis.frames import ethernet, ipv4, tcp

PACKETS = 120


def _segment(number: int, *, data: bool) -> bytes:
    return tcp(seq=1 + number, flags=0x18 if data else 0x10, payload=b"x" * 100 if data else b"")


@pytest.fixture
def trial(submit, run) -> Trial:
    """A finished trial with a capture of its own: 120 packets, every third with data."""
    experiment = submit(repetitions=2, control=True)
    run()
    trial = experiment.trials.filter(kind="measured", configuration__hosts=2).order_by("pk").first()
    frames = [
        Frame.whole(1_700_000_000_000_000_000 + i * 1_000_000, ethernet(ipv4(_segment(i, data=i % 3 == 0))))
        for i in range(PACKETS)
    ]
    directory = trial_directory(trial)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "capture.pcapng").write_bytes(pcapng(frames))
    write_analysis(
        directory / ANALYSIS_NAME,
        {
            "series": {"wire_bytes": [1]},
            "legacy_2011": {"figures": {"Number of packets": "120"}, "caveats": ["Is 1/8."]},
        },
    )
    for kind, name in (("capture", "capture.pcapng"), ("analysis", ANALYSIS_NAME)):
        Artifact.describe(trial.pk, kind, directory / name).save()
    return trial


def rows(html: str) -> list[int]:
    return [int(n) for n in re.findall(r'aria-label="Show packet (\d+)"', html)]


def ask(page, trial: Trial, **query: str):
    return page.get(reverse("trial-packets", args=[trial.pk]), query)


def test_it_pages_the_list_on_to_the_last_packet(page, trial):
    seen, address = [], reverse("trial-packets", args=[trial.pk])
    while address:
        html = page.get(address).content.decode()
        seen += rows(html)
        following = re.search(r'hx-get="([^"]*page=next)"', html)
        address = following[1].replace("&amp;", "&") if following else ""
    assert seen == list(range(1, PACKETS + 1))


def test_it_says_ends_protocol_and_flags_of_a_row(page, trial):
    html = ask(page, trial, first="4", last="4").content.decode()
    assert rows(html) == [4]
    for words in ("10.0.0.1", "10.0.0.2", "TCP", "0.003000", "40000 → 20000 [PSH, ACK]", "Len=100"):
        assert words in html


def test_one_connection_is_chosen_among_the_listed_packets(page, trial):
    query = {"filter": "tcp.len > 0", "from_s": "0.05"}
    listed = rows(ask(page, trial, **query).content.decode())
    for _ in range(2):  # chosen again, it does not change
        html = ask(page, trial, **query).content.decode()
        (link,) = set(re.findall(r'href="([^"]*)"\s+aria-label="Only this connection', html))
        query = QueryDict(unescape(link).partition("?")[2]).dict()
        assert (query["filter"], query["from_s"]) == ("(tcp.len > 0) and tcp.stream == 0", "0.05")
        assert rows(html) == listed


@pytest.mark.parametrize("text", ["tcp.stream == 2 or tcp.stream == 1", "not tcp.stream == 1"])
def test_a_filter_that_only_ends_with_the_connection_is_narrowed(text: str) -> None:
    chosen = QueryDict(PacketQuery(filter=text).of_connection("tcp.stream == 1"))
    assert chosen["filter"] == f"({text}) and tcp.stream == 1"


def test_its_rows_are_those_of_tshark(page, trial):
    columns = 'gui.column.format:"Protocol","%p","Info","%i"'
    capture = trial.artifacts.get(kind="capture").file
    argv = ["tshark", "-n", "-r", str(capture), "-c", "50", "-T", "tabs", "-o", columns]
    printed = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=150).stdout.splitlines()
    html = ask(page, trial).content.decode()
    cells = re.findall(r"<td>(.*?)</td>.*?<td class=\"opt mono\">(.*?)</td>", html, re.DOTALL)
    assert [tuple(line.split("\t")) for line in printed] == [tuple(map(unescape, cell)) for cell in cells]


def test_it_lists_an_interval_of_the_run_whose_address_is_the_pages(page, trial):
    answer = ask(page, trial, from_s="0.0100", until_s="0.0125")
    assert rows(answer.content.decode()) == [11, 12, 13]
    address = answer.headers["HX-Replace-Url"]
    assert address == f"{trial.get_absolute_url()}?tab=packets&from_s=0.0100&until_s=0.0125"
    field = re.search(r'id="packet-from-s"[^>]*', page.get(address).content.decode())[0]
    assert 'value="0.0100"' in field
    following = ask(page, trial, from_s="0.0100").content.decode()
    assert "from_s=0.0100" in re.search(r'hx-get="([^"]*page=next)"', following)[1]


def test_it_applies_a_display_filter_together_with_the_range(page, trial):
    html = ask(page, trial, filter="tcp.len > 0", first="10", last="20").content.decode()
    assert rows(html) == [10, 13, 16, 19]


@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        ({"filter": "tcp.len >"}, "filter", ""),
        ({"filter": "no.such.field"}, "filter", "no.such.field"),
        ({"first": "0"}, "range", "numbered from 1"),
        ({"first": "²"}, "range", "numbered from 1"),
        ({"first": "9", "last": "3"}, "range", "first not above the last"),
        ({"from_s": "soon"}, "range", "seconds since the first packet"),
        ({"from_s": "nan"}, "range", "seconds since the first packet"),
        ({"until_s": "-1"}, "range", "seconds since the first packet"),
        ({"from_s": "2", "until_s": "1"}, "range", "is before its start"),
    ],
)
def test_it_says_what_is_wrong_at_its_field_and_leaves_the_list(page, trial, query, field, words):
    answer = ask(page, trial, **query)
    assert answer.status_code == 200
    assert answer.headers["HX-Reswap"] == "none"
    message = re.search(rf'id="err-packet-{field}"[^>]*>([^<]*)<', answer.content.decode())[1]
    assert message
    assert words in message


def test_it_shows_one_packet_with_every_field(page, trial):
    html = page.get(reverse("trial-packet", args=[trial.pk, 4])).content.decode()
    for words in ("Internet Protocol Version 4", "Destination Port: 20000", "Flags: 0x018 (PSH, ACK)"):
        assert words in html
    assert html.count("<details") > 4
    assert page.get(reverse("trial-packet", args=[trial.pk, 999])).status_code == 404


def test_without_a_capture_there_is_no_inspector(page, trial):
    trial.artifacts.filter(kind="capture").update(removed_at=trial.ended_at)
    assert 'aria-controls="packets"' not in page.get(trial.get_absolute_url()).content.decode()
    assert ask(page, trial).status_code == 404


def test_it_compares_an_environment_with_that_of_a_sibling(page, trial):
    sibling = Trial.objects.get(configuration=trial.configuration, kind="measured", repetition=2)
    for item, kernel in ((trial, "6.8.0-45"), (sibling, "6.8.0-47")):
        facts = Environment.store({"kernel": kernel, "cpu": "the same"})
        Trial.objects.filter(pk=item.pk).update(environment=facts)
    html = page.get(trial.get_absolute_url()).content.decode()
    section = html.partition('id="environment-beside"')[2].partition("</section>")[0]
    assert "6.8.0-45" in section
    assert "6.8.0-47" in section
    assert "the same" not in section
    Trial.objects.filter(pk=sibling.pk).update(environment=Trial.objects.get(pk=trial.pk).environment)
    html = page.get(reverse("trial-environment", args=[trial.pk]), {"against": str(sibling.pk)}).content.decode()
    assert "No differences" in html
    assert "same recorded environment" in html


def test_the_other_trials_differ_in_their_words(page, trial):
    """A disturbed trial and its repeat share their repetition."""
    same = Trial.objects.filter(configuration=trial.configuration, kind="measured")
    same.update(environment=Environment.store({"kernel": "6"}))
    disturbed = same.get(repetition=2)
    columns = {f.attname: getattr(disturbed, f.attname) for f in Trial._meta.concrete_fields if not f.primary_key}
    same.filter(pk=disturbed.pk).update(trust="degraded")
    repeat = Trial.objects.create(**columns | {"attempt": 2})
    words = {pk: text for pk, text, _ in environment_comparison(Trial.objects.get(pk=trial.pk))["siblings"]}
    assert words[disturbed.pk] == f"trial {disturbed.pk}: repetition 2, degraded"
    assert words[repeat.pk] == f"trial {repeat.pk}: repetition 2, attempt 2"


def test_the_report_of_2011_is_not_of_an_own_program(page, trial):
    address = trial.get_absolute_url()
    assert "As published in 2011" in page.get(address).content.decode()
    trial.experiment.__class__.objects.filter(pk=trial.experiment_id).update(workload="command")
    assert "As published in 2011" not in page.get(address).content.decode()


def test_files_of_no_other_kind_have_words(page, trial):
    path = trial_directory(trial) / "ranks.json"
    path.write_text("[]")
    Artifact.describe(trial.pk, "other", path).save()
    assert "Resources of the ranks" in page.get(trial.get_absolute_url()).content.decode()
