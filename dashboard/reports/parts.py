"""Contents of report parts as plain data, for pages, frozen versions and files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.db.models import Count
from django.http import QueryDict

from analysis import numbers
from analysis.conclusions import causes_of
from dashboard.charts.panel import Chart
from dashboard.labels import trial_role
from dashboard.panels.compare import charts as compare_charts
from dashboard.panels.compare.sentences import amount
from dashboard.panels.compare.sentences import answer as compare_answer
from dashboard.panels.experiment.diagnosis import WEAKENING, diagnosis_context
from dashboard.panels.experiment.results import Results
from dashboard.panels.history import history_chart, load_words
from dashboard.panels.parts import Measured
from dashboard.panels.parts.efficiencies import efficiency_trees
from dashboard.reports.markdown import FIELD, TABLES, Part, parts_of
from dashboard.requests.explore import panels, parse_question
from dashboard.requests.lookup import requested_comparison
from dashboard.states import STRENGTH, chip_of
from experiments.access import visible_deleted, visible_experiments
from experiments.common import budget
from experiments.errors import CannotCompare, CannotExplore, FieldError
from experiments.metrics import find as describe
from experiments.metrics import is_metric
from experiments.models import Configuration, Experiment, Kind, Report, State
from experiments.models.states import disturbed
from experiments.selectors.comparison import compare
from experiments.selectors.diagnosis import CachedDiagnosis, answers_of, cached_diagnosis, diagnosis_of
from experiments.selectors.explorer import pivot
from experiments.selectors.history import history_of

Body = dict[str, Any]
"""JSON data: title, notes, sentences, charts, table."""
_NO_DATA: Final = "Not measured yet."
MOST_EXPLORED: Final = 50
"""Experiments of a pinned chart of Explore."""


@dataclass
class Source:
    """Experiments that a user may see; each is loaded once."""

    user: Any
    _experiments: dict[str, Experiment] = field(default_factory=dict)
    _slugs: set[str] = field(default_factory=set)
    _trashed: set[str] | None = None
    _results: dict[int, Results] = field(default_factory=dict)
    _cautions: dict[int, dict[str, str]] = field(default_factory=dict)
    _drawn: dict[tuple[str, str], Drawn | LookupError] = field(default_factory=dict)

    def load(self, parts: Iterable[Part]) -> None:
        """Load the experiments of parts in one query."""
        slugs = {slug for part in parts for slug in part.slugs} - self._slugs
        if slugs:
            self._slugs |= slugs
            visible = visible_experiments(self.user).select_related("cluster", "owner", "project")
            self._experiments |= {experiment.slug: experiment for experiment in visible.filter(slug__in=slugs)}

    def experiments(self, part: Part) -> list[Experiment] | None:
        """Return the experiments of a part, or None if one is missing or not visible."""
        if part.query:
            try:
                return self.drawn(part).experiments
            except LookupError:
                return None
        self.load([part])
        experiments = [self._experiments[slug] for slug in part.slugs if slug in self._experiments]
        return experiments if len(experiments) == len(part.slugs) else None

    def is_in_trash(self, part: Part) -> bool:
        """Return True if the user may restore an experiment of the part."""
        if self._trashed is None:
            self._trashed = {row.slug for row in visible_deleted(self.user)}
        return not self._trashed.isdisjoint(part.slugs)

    def visible(self, keys: Collection[int]) -> list[Experiment] | None:
        """Return experiments by primary key, or None if one is missing or not visible."""
        experiments = list(visible_experiments(self.user).filter(pk__in=keys))
        return experiments if len(experiments) == len(set(keys)) else None

    def results(self, experiment: Experiment) -> Results:
        if experiment.pk not in self._results:
            diagnosis, _ = cached_diagnosis(experiment)
            self._results[experiment.pk] = (
                Results(experiment, diagnosis.study, diagnosis.answer) if diagnosis else Results(experiment)
            )
        return self._results[experiment.pk]

    def caution(self, experiment: Experiment) -> dict[str, str]:
        """Return a note if other load slowed trials of an experiment."""
        if experiment.pk not in self._cautions:
            self._cautions[experiment.pk] = _caution(experiment)
        return self._cautions[experiment.pk]

    def charts(self, experiment: Experiment) -> dict[str, Chart]:
        """Return name -> chart of an experiment's page."""
        sections = self.results(experiment).sections()
        return {chart.element: chart for section in sections for chart in section.charts}

    def drawn(self, part: Part) -> Drawn:
        """Return the charts of a page by its query string. Raise LookupError."""
        page = part.kind, part.query
        if page not in self._drawn:
            try:
                self._drawn[page] = _PAGES[part.kind](self.user, QueryDict(part.query))
            except (CannotCompare, CannotExplore) as error:
                self._drawn[page] = LookupError(str(error))
        if isinstance(drawn := self._drawn[page], LookupError):
            raise drawn
        return drawn

    def body(self, part: Part) -> Body:
        """Return the current contents of a part. Raise LookupError with a message.

        Counts as processor time: sixty comparisons would take each reader minutes.
        """
        budget.check()
        if part.query:
            drawn = self.drawn(part)
            return _one_chart(drawn.charts, part.what, "this page") | ({"note": drawn.note} if drawn.note else {})
        experiments = self.experiments(part)
        if experiments is None:
            missing = next((slug for slug in part.slugs if slug not in self._experiments), "")
            raise LookupError(f"there is no experiment {missing!r}, or you may not see it")
        if part.kind == "compare":
            return _comparison(self.user, experiments)
        experiment = experiments[0]
        if part.kind == "answer":
            return _answer(experiment)
        if part.kind == "table":
            return _TABLES[part.what](self, experiment)
        return _one_chart(self.charts(experiment), part.what, experiment.slug) | self.caution(experiment)


def _caution(experiment: Experiment) -> dict[str, str]:
    """Return a note if other load slowed trials of a chart."""
    counts = experiment.trials.counted().aggregate(counted=Count("pk"), slowed=Count("pk", filter=disturbed()))
    if not counts["slowed"]:
        return {}
    words = f"Other load slowed {counts['slowed']} of {numbers.plural(counts['counted'], 'counted trial')}"
    return {"note": f"{words}: their points have no clean trial."}


@dataclass(frozen=True)
class Drawn:
    """Charts of a page by name, its experiments, and a note about other load."""

    experiments: list[Experiment]
    charts: dict[str, Chart]
    note: str = ""


def _compared(user: Any, params: QueryDict) -> Drawn:
    compared = requested_comparison(user, params)
    experiments = {member.experiment.pk: member.experiment for member in compared.members}
    charts = {chart.element: chart for chart in compare_charts.charts(compared)}
    answer = compare_answer(compared)
    word = STRENGTH["moderate"][1]
    tentative = f"{word}. " if word in (answer.strength[1], *(member.strength[1] for member in answer.against)) else ""
    return Drawn(list(experiments.values()), charts, f"{tentative}{answer.caution}" if answer.caution else "")


def _explored(user: Any, params: QueryDict) -> Drawn:
    question = parse_question(user, params)
    matching = question.configurations.order_by().values("experiment")
    experiments = list(Experiment.objects.filter(pk__in=matching)[: MOST_EXPLORED + 1])
    if len(experiments) > MOST_EXPLORED:
        raise CannotExplore(f"more than {MOST_EXPLORED} experiments match: filter before you pin")
    charts = panels(pivot(question.configurations, question.query), question)
    return Drawn(experiments, {chart.element: chart for chart in charts})


def _recorded(user: Any, params: QueryDict) -> Drawn:
    configuration, cluster, metric = (params.get(name, "") for name in ("configuration", "cluster", "metric"))
    if not is_metric(metric):
        raise CannotExplore(f"{metric[:80]!r} is not a metric")
    try:
        record = history_of(user, configuration, cluster, metric)
    except Configuration.DoesNotExist:
        raise CannotExplore("there is no such history, or you may not see it") from None
    experiments = list(Experiment.objects.filter(slug__in={entry.experiment for entry in record.entries}))
    return Drawn(experiments, {"history": history_chart(record)} if record.entries else {}, load_words(record))


_PAGES: Final[Mapping[str, Callable[[Any, QueryDict], Drawn]]] = {
    "compare": _compared,
    "explore": _explored,
    "history": _recorded,
}


def _one_chart(charts: Mapping[str, Chart], name: str, page: str) -> Body:
    if name not in charts:
        raise LookupError(f"{page} has no chart {name!r}; it has {', '.join(charts) or 'none yet'}")
    return {"title": charts[name].title, "charts": [_chart(charts[name])]}


def errors_of(parts: Sequence[Part], source: Source, previous: Iterable[str] = ()) -> list[FieldError]:
    """Return an error per part without contents, except hidden ``previous`` ones."""
    source.load(parts)
    hidden_keys, errors = set(previous), []
    for part in parts:
        if part.key in hidden_keys and source.experiments(part) is None:
            continue
        try:
            source.body(part)
        except LookupError as error:
            errors.append(FieldError(FIELD, str(error.args[0]), part.line))
    return errors


def pinned_in(report: Report, user: Any) -> list[Experiment]:
    """Return the visible experiments of a report's newest version."""
    source, parts = Source(user), parts_of(report.current.text)
    source.load(parts)
    return list({experiment.pk: experiment for part in parts for experiment in source.experiments(part) or ()}.values())


def offered(source: Source, experiment: Experiment) -> list[tuple[str, str]]:
    """Return (title, line to insert) of the parts of an experiment."""
    slug = experiment.slug
    charts = [
        (f"Chart: {chart.title}", f"{{{{ chart {slug} {chart.element} }}}}")
        for section in source.results(experiment).panels()
        for chart in section.charts
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
        answer = diagnosis_of(experiment).answer  # has too many trials for `answers_of`
    tone, word = STRENGTH[answer.strength]
    diagnosis, is_current = cached_diagnosis(experiment)
    figures = diagnosis.key_figures if diagnosis is not None and is_current else ()
    sentences = causes_in_sentences(diagnosis) + _doubts(diagnosis) if diagnosis is not None and is_current else []
    return {
        "title": "Answer",
        "asks": answer.asks,
        "sentence": answer.sentence,
        "tone": tone,
        "strength": word,
        "sentences": sentences,
        "facts": [list(pair) for pair in figures],
    }


def causes_in_sentences(diagnosis: CachedDiagnosis) -> list[str]:
    """Return the causes of the answer, those of the findings last."""
    causes = [(c.at, f"{c.statement[:1].upper()}{c.statement[1:]}.") for c in causes_of(diagnosis.answer)]
    facts = [(fact.at, fact.statement) for fact in diagnosis.facts if fact.fold == "cause"]
    return list(dict.fromkeys(f"{at}: {words}" if at else words for at, words in (*causes, *facts)))


def _doubts(diagnosis: CachedDiagnosis) -> list[str]:
    """Return what weakens the answer, and what the trials cannot tell."""
    weakening = [f"{fact.statement} {fact.next_step}".strip() for fact in diagnosis.facts if fact.rule in WEAKENING]
    return [*weakening, *diagnosis.study.report.cannot_tell]


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], words: int = 0) -> Body:
    """Return a table whose first ``words`` columns are text; the others are numbers."""
    if not rows:
        return {"title": title, "empty": _NO_DATA}
    columns = [{"label": head, "number": index >= words} for index, head in enumerate(heads)]
    return {"title": title, "columns": columns, "words": words, "rows": [list(row) for row in rows]}


def _configurations(source: Source, experiment: Experiment) -> Body:
    table = source.results(experiment).table()
    units = [f"{column.label} ({column.unit})" if column.unit else column.label for column in table["columns"]]
    heads = [*table["names"], *(["Ranks"] if table["ranks"] else []), *units, "Finished trials"]
    rows = [
        [
            *row["values"],
            *([numbers.grouped(row["row"].ranks)] if table["ranks"] else []),
            *(f"{value} ({span})" if span else value for value, span in row["cells"]),
            str(sum(mark.state == State.FINISHED and mark.kind == Kind.MEASURED for mark in row["row"].trials)),
        ]
        for row in table["rows"]
    ]
    note = "As printed." if experiment.published else "Median (lowest to highest) of the counted trials."
    if (page := table["page"]).is_part:
        note += f" Configurations {page.first} to {numbers.grouped(page.last)} of {numbers.grouped(page.total)}."
    return _table("Configurations", heads, rows) | {"note": note}


def _scaling(source: Source, experiment: Experiment) -> Body:
    diagnosis = diagnosis_of(experiment)
    context = diagnosis_context(diagnosis, source.results(experiment), {})
    sizes = context["sizes"]
    axis, cells = (
        diagnosis.study.axis.capitalize(),
        ("size", "elapsed", "interval", "speedup", "efficiency", "karp_flatt"),
    )
    heads = [*sizes["names"], axis, "Elapsed time", "Interval", sizes["speed_up"], "Efficiency", "Serial fraction"]
    rows = [[*row["where"], *(row[cell] for cell in cells)] for row in sizes["rows"]]
    body = _table("Scaling", heads, rows)
    note = f"Against {sizes['reference']} {diagnosis.study.axis}; {sizes['intervals']}.".replace("; .", ".")
    if context["compares"]:
        note += f" Elapsed time, as measured; the answer compares {context['compares']}."
    return body | ({"note": note} if rows else {})


def _efficiency(source: Source, experiment: Experiment) -> Body:
    trees = efficiency_trees(Measured.alone(experiment))
    if not trees:
        empty = "No counted trial has an MPI profile, which the efficiencies need."
        return {"title": "Efficiencies", "empty": empty}
    names = [branch.label for branch in trees[0].branches]
    has_series = len(trees) > 1
    rows = []
    for tree in trees:
        data = tree.to_dict()["sizes"]
        for size in data:
            values = (numbers.amount(size[branch.name], numbers.SHARE) for branch in tree.branches)
            rows.append([*([tree.name] if has_series else []), str(size["hosts"]), str(size["ranks"]), *values])
    heads = [*(["Series"] if has_series else []), "Hosts", "Ranks", *names]
    return _table("Efficiencies", heads, rows, int(has_series)) | {"note": "Medians of the counted trials."}


def _trials(source: Source, experiment: Experiment) -> Body:
    results = source.results(experiment)
    metric = results.deciding or "elapsed_s"
    rows = []
    for row in results.rows:
        values = dict(zip(row.trial_ids.get(metric, ()), row.values.get(metric, ()), strict=False))
        for mark in row.trials:
            value = values.get(mark.pk)
            rows.append(
                [
                    str(mark.pk),
                    results.point(row),
                    trial_role(mark.kind, mark.repetition, mark.attempt),
                    chip_of(mark.state).word,
                    mark.trust or numbers.NOTHING,
                    numbers.NOTHING if value is None else amount(value, metric),
                ]
            )
    label = describe(metric).label
    return _table("Trials", ["Trial", "Point", "Role", "State", "Trust in the capture", label], rows, 5)


_TABLES: Final[Mapping[str, Callable[[Source, Experiment], Body]]] = {
    "configurations": _configurations,
    "scaling": _scaling,
    "efficiency": _efficiency,
    "trials": _trials,
}


def _comparison(user: Any, experiments: Sequence[Experiment]) -> Body:
    try:
        compared = compare(user, [f"e:{experiment.slug}" for experiment in experiments])
    except CannotCompare as error:
        raise LookupError(str(error)) from None
    answer = compare_answer(compared)
    members = [[member.label, member.name] for member in compared.members]
    tone, word = answer.strength
    cautions = [answer.caution] if answer.caution else []
    sentences = [sentence for member in answer.against for sentence in (*member.sentences, member.counted)]
    charts = compare_charts.charts(compared)[:2]
    return {
        "title": "Comparison",
        "sentence": answer.verdict,
        "tone": tone,
        "strength": word,
        "sentences": [*cautions, *sentences],
        "facts": members,
        "charts": [_chart(chart) for chart in charts],
    }
