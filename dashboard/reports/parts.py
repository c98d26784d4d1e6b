"""What a part of a report shows, as plain data: drawn on pages, stored with a version where it is frozen, put into the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from analysis import numbers
from dashboard.charts.panel import Chart
from dashboard.labels import trial_role
from dashboard.panels.compare import charts as compare_charts
from dashboard.panels.compare.sentences import amount
from dashboard.panels.compare.sentences import answer as compare_answer
from dashboard.panels.experiment.diagnosis import STRENGTH, shown
from dashboard.panels.experiment.results import Results
from dashboard.panels.parts import Measured
from dashboard.panels.parts.efficiencies import efficiency_trees
from dashboard.reports.markdown import FIELD, TABLES, Part, parts_of
from dashboard.states import chip_of
from experiments.access import visible_experiments
from experiments.errors import CannotCompare, FieldError
from experiments.metrics import find as describe
from experiments.models import Experiment, Kind, Report, State
from experiments.selectors.comparison import compare
from experiments.selectors.diagnosis import answers_of, diagnosis_of, kept_diagnosis

Body = dict[str, Any]
"""JSON-ready: title, notes, and what there is of sentences, charts and a table."""
_NO_DATA: Final = "Nothing of this was measured so far."


@dataclass
class Source:
    """Experiments as one reader sees them; what several parts ask for is read once."""

    user: Any
    _found: dict[str, Experiment] = field(default_factory=dict)
    _asked: set[str] = field(default_factory=set)
    _results: dict[int, Results] = field(default_factory=dict)

    def load(self, parts: Iterable[Part]) -> None:
        """Read the experiments of all these parts at once."""
        slugs = {slug for part in parts for slug in part.slugs} - self._asked
        if slugs:
            self._asked |= slugs
            visible = visible_experiments(self.user).select_related("cluster", "owner", "project")
            self._found |= {each.slug: each for each in visible.filter(slug__in=slugs)}

    def experiments(self, part: Part) -> list[Experiment] | None:
        """The experiments of a part, or None where one of them is not there or not for this reader."""
        self.load([part])
        found = [self._found.get(slug) for slug in part.slugs]
        return [each for each in found if each is not None] if None not in found else None

    def results(self, experiment: Experiment) -> Results:
        if experiment.pk not in self._results:
            kept, _ = kept_diagnosis(experiment)
            self._results[experiment.pk] = Results(experiment, kept.study if kept else None)
        return self._results[experiment.pk]

    def charts(self, experiment: Experiment) -> dict[str, Chart]:
        """The charts of an experiment's page by their names."""
        sections = self.results(experiment).sections()
        return {chart.element: chart for section in sections for chart in section.charts}

    def body(self, part: Part) -> Body:
        """Return what a part shows now. Raise LookupError in words where it shows nothing that there is."""
        experiments = self.experiments(part)
        if experiments is None:
            missing = next((slug for slug in part.slugs if slug not in self._found), "")
            raise LookupError(f"there is no experiment {missing!r}, or it is not for you to see")
        if part.kind == "compare":
            return _comparison(self.user, experiments)
        experiment = experiments[0]
        if part.kind == "answer":
            return _answer(experiment)
        if part.kind == "table":
            return _TABLES[part.what](self, experiment)
        charts = self.charts(experiment)
        if part.what not in charts:
            raise LookupError(
                f"{experiment.slug} has no chart {part.what!r}; it has {', '.join(charts) or 'none so far'}"
            )
        return {"title": charts[part.what].title, "charts": [_chart(charts[part.what])]}


def errors_of(parts: Sequence[Part], source: Source, known: Iterable[str] = ()) -> list[FieldError]:
    """Return an error for every part that shows nothing; those of ``known`` (keys) stood in the report before, by whomever."""
    source.load(parts)
    before, errors = set(known), []
    for part in parts:
        if part.key in before and source.experiments(part) is None:
            continue
        try:
            source.body(part)
        except LookupError as error:
            errors.append(FieldError(FIELD, str(error.args[0]), part.line))
    return errors


def pinned_in(report: Report, user: Any) -> list[Experiment]:
    """Return the experiments of the newest version of a report that ``user`` may see, each once."""
    source, parts = Source(user), parts_of(report.current.text)
    source.load(parts)
    return list({each.pk: each for part in parts for each in source.experiments(part) or ()}.values())


def offered(source: Source, experiment: Experiment) -> list[tuple[str, str]]:
    """(title, line to insert) of every part that an experiment offers."""
    slug = experiment.slug
    charts = [
        (f"Chart: {chart.title}", f"{{{{ chart {slug} {name} }}}}") for name, chart in source.charts(experiment).items()
    ]
    tables = [(f"Table: {name}", f"{{{{ table {slug} {name} }}}}") for name in TABLES]
    return [("Answer", f"{{{{ answer {slug} }}}}"), *charts, *tables]


def _chart(chart: Chart) -> dict[str, Any]:
    return {name: value for name, value in vars(chart).items() if name != "element"} | {
        "views": [[name, figure] for name, figure in chart.views]
    }


def _answer(experiment: Experiment) -> Body:
    answer = answers_of([experiment]).get(experiment.pk)
    if answer is None:
        if not experiment.trials.counted().exists():
            return {"title": "Answer", "empty": "No trial has finished yet."}
        answer = diagnosis_of(experiment).answer  # of so many trials that no list waits for it
    tone, word = STRENGTH[answer.strength]
    kept, fresh = kept_diagnosis(experiment)
    figures = kept.key_figures if kept is not None and fresh else ()
    return {
        "title": "Answer",
        "asks": answer.asks,
        "sentence": answer.sentence,
        "tone": tone,
        "strength": word,
        "facts": [list(pair) for pair in figures],
    }


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], words: int = 0) -> Body:
    """A table whose first ``words`` columns are words; the others are numbers."""
    if not rows:
        return {"title": title, "empty": _NO_DATA}
    columns = [{"label": head, "number": place >= words} for place, head in enumerate(heads)]
    return {"title": title, "columns": columns, "words": words, "rows": [list(row) for row in rows]}


def _configurations(source: Source, experiment: Experiment) -> Body:
    table = source.results(experiment).table()
    units = [f"{column.label} ({column.unit})" if column.unit else column.label for column in table["columns"]]
    heads = [*table["names"], *(["Ranks"] if table["ranks"] else []), *units, "Finished trials"]
    rows = [
        [
            *row["values"],
            *([numbers.grouped(row["row"].ranks)] if table["ranks"] else []),
            *(f"{value} ± {spread}" if spread else value for value, spread in row["cells"]),
            str(sum(mark.state == State.FINISHED and mark.kind == Kind.MEASURED for mark in row["row"].trials)),
        ]
        for row in table["rows"]
    ]
    note = "As printed." if experiment.published else "Median and half the range (±) of the counted trials."
    if (page := table["page"]).is_part:
        note += f" Configurations {page.first} to {numbers.grouped(page.last)} of {numbers.grouped(page.total)}."
    return _table("Configurations", heads, rows) | {"note": note}


def _scaling(source: Source, experiment: Experiment) -> Body:
    diagnosis = diagnosis_of(experiment)
    sizes = shown(diagnosis, source.results(experiment), {})["sizes"]
    axis, cells = (
        diagnosis.study.axis.capitalize(),
        ("size", "elapsed", "interval", "speedup", "efficiency", "karp_flatt"),
    )
    heads = [*sizes["names"], axis, "Elapsed time", "Interval", "Speed-up", "Efficiency", "Serial fraction"]
    rows = [[*row["where"], *(row[cell] for cell in cells)] for row in sizes["rows"]]
    body = _table("Scaling", heads, rows)
    note = f"Against {sizes['reference']} {diagnosis.study.axis}; {sizes['intervals']}."
    return body | ({"note": note.replace("; .", ".")} if rows else {})


def _efficiency(source: Source, experiment: Experiment) -> Body:
    trees = efficiency_trees(Measured.alone(experiment))
    if not trees:
        empty = "No counted trial has a profile of its time inside MPI, from which the efficiencies come."
        return {"title": "Efficiencies", "empty": empty}
    names = [branch.label for branch in trees[0].branches]
    apart = len(trees) > 1
    rows = []
    for tree in trees:
        data = tree.to_dict()["sizes"]
        for size in data:
            values = (numbers.amount(size[branch.name], numbers.SHARE) for branch in tree.branches)
            rows.append([*([tree.name] if apart else []), str(size["hosts"]), str(size["ranks"]), *values])
    heads = [*(["Series"] if apart else []), "Hosts", "Ranks", *names]
    return _table("Efficiencies", heads, rows, int(apart)) | {"note": "Medians of the counted trials."}


def _trials(source: Source, experiment: Experiment) -> Body:
    results = source.results(experiment)
    decides = results.deciding or "elapsed_s"
    rows = []
    for row in results.rows:
        values = dict(zip(row.trial_ids.get(decides, ()), row.values.get(decides, ()), strict=False))
        for mark in row.trials:
            value = values.get(mark.pk)
            rows.append(
                [
                    str(mark.pk),
                    results.point(row),
                    trial_role(mark.kind, mark.repetition),
                    chip_of(mark.state).word,
                    mark.trust or numbers.NOTHING,
                    numbers.NOTHING if value is None else amount(value, decides),
                ]
            )
    label = describe(decides).label
    return _table("Trials", ["Trial", "Point", "Role", "State", "Trust in the capture", label], rows, 5)


_TABLES: Final[Mapping[str, Callable[[Source, Experiment], Body]]] = {
    "configurations": _configurations,
    "scaling": _scaling,
    "efficiency": _efficiency,
    "trials": _trials,
}


def _comparison(user: Any, experiments: Sequence[Experiment]) -> Body:
    try:
        compared = compare(user, [f"e:{each.slug}" for each in experiments])
    except CannotCompare as error:
        raise LookupError(str(error)) from None
    told = compare_answer(compared)
    members = [[member.label, member.name] for member in compared.members]
    sentences = [sentence for each in told.against for sentence in each.sentences]
    drawn = compare_charts.charts(compared)[:2]
    return {
        "title": "Comparison",
        "sentence": told.verdict,
        "sentences": sentences,
        "facts": members,
        "charts": [_chart(chart) for chart in drawn],
    }
