"""The fields of the new-experiment form, from a draft and its errors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from django.http import QueryDict

from dashboard.labels import SAME_WORK, STUDY_KINDS, parameter_label
from dashboard.panels.new.draft import default_of, holds_text, shown_default, shown_value
from dashboard.panels.new.preview import UNIT_EXAMPLES, bare_note, is_bare, unit_note
from dashboard.panels.new.proposal import row_values
from experiments import workloads
from experiments.common.quantities import DURATION, FRACTION, Dimension
from experiments.errors import FieldError
from experiments.metrics import ENERGY, deciding_choices
from experiments.models import Cluster
from experiments.specification import Capture, ExperimentSpec, Link
from experiments.specification.fields import EACH
from experiments.specification.goal import ANSWERED, Goal, RepetitionRange
from experiments.specification.parameters import CLUSTER_PARAMETERS, LAUNCH_PARAMETERS, LINK_PARAMETERS
from experiments.specification.placement import WantedBind
from experiments.specification.ranges import as_written, expand_values
from experiments.workloads.fields import choices_of

Texts = Sequence[str]
Choices = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Field:
    """One input: `path` is its path in the specification and its name in the form."""

    path: str
    label: str
    value: str
    unit: str = ""
    hint: str = ""
    swept: bool = False
    errors: Texts = ()
    choices: Choices = ()
    warnings: Texts = ()
    disabled: Texts = ()
    """Values of choices that cannot be chosen."""

    @property
    def remarks(self) -> Texts:
        """Return the errors, then the warnings."""
        return (*self.errors, *self.warnings)

    @property
    def tone(self) -> str:
        return "warn" if self.warnings and not self.errors else ""

    @property
    def element(self) -> str:
        return "f-" + self.path.replace(".", "-")

    @property
    def error_place(self) -> str:
        return "err-" + self.path.replace(".", "-")

    @property
    def parameter(self) -> str:
        """Return the name under which this can be swept."""
        return self.path.removeprefix("parameters.")


@dataclass(frozen=True, slots=True)
class SweepRow:
    """One swept parameter with its number of values (None: invalid)."""

    name: str
    values: str
    count: int | None = None
    expanded: str = ""
    errors: Texts = ()
    explores: bool = False
    """Rounds choose the sizes."""

    @classmethod
    def of(cls, name: str, written: Any, errors: Texts, *, is_text: bool = False) -> SweepRow:
        explores = isinstance(written, Mapping) and "explore" in written
        try:
            values = expand_values(written, text=is_text)
            written = as_written(written) if isinstance(written, Mapping) else written
        except ValueError:
            values = None
            written = written.get("choose", written) if explores else written
        text = ", ".join(map(str, written)) if isinstance(written, list | tuple) else str(written)
        if values is None:
            return cls(name, text, errors=errors, explores=explores)
        expanded = "  ".join(map(str, values[:40])) + ("  …" if len(values) > 40 else "")
        return cls(name, text, None if errors else len(values), "" if explores else expanded, errors, explores)


_BOUND = {
    "cluster": "Default of the cluster",
    "default": "As the MPI library does, if cores are not shared",
    "none": "Not bound",
    "hwthread": "Hardware thread, of which a core has one or two",
    "socket": "Socket: the cores of one processor",
    "numa": "NUMA node: cores with memory of their own",
}
# Plain fields: path -> (label, hint, choices). Without a hint, that of the specification is shown.
_PLAIN: dict[str, tuple[str, str, Choices]] = {
    "name": ("Name", "", ()),
    "description": ("Description", "", ()),
    "tags": ("Tags", "Separated by commas.", ()),
    "where": ("Filter", "For example hosts * ranks_per_host <= 16.", ()),
    "scaling": (
        "Study",
        "",
        tuple(STUDY_KINDS.items()),
    ),
    "grows_with_hosts": ("Grows with hosts", "", ()),
    "deciding": ("Deciding metric", "", ()),
    "certificate": (
        "Certificate",
        "",
        (
            ("degrade", "Flag trials if the link is not as requested"),
            ("require", "Refuse trials if the link is not as requested"),
            ("skip", "Do not measure the link"),
        ),
    ),
    "repetitions": ("Repetitions", "", ()),
    "warmups": ("Warm-ups", "Excluded from statistics.", ()),
    "order": (
        "Order",
        "",
        (
            ("interleaved", "All configurations once, then all again"),
            ("randomised", "All once in random order, then all again"),
            ("sequential", "All repetitions of a configuration, then the next one"),
        ),
    ),
    "seed": ("Seed", "Seed of the random order.", ()),
    "time_limit_s": ("Time limit", "Limit of one trial.", ()),
    "retries": ("Retries", "", ()),
    "disturbed": (
        "Disturbed trials",
        "Trials slowed by other load on the machines.",
        (("repeat", "Repeat once"), ("keep", "Mark only")),
    ),
    "allocation": (
        "Allocation",
        "Use of one scheduler job.",
        (
            ("cluster", "Default of the cluster"),
            ("per size", "Trials of one number of hosts"),
            ("per experiment", "All trials, on the nodes of the largest"),
        ),
    ),
    "control": (
        "Control runs without capture",
        "One for each repetition gives the capture overhead an interval.",
        (("0", "None"), (EACH, "One for each repetition"), ("1", "One for each configuration")),
    ),
    "ideal": ("Ideal network", "", ()),
    "transport": ("Transport", "", ()),
    "bind": ("Bind ranks to", "", tuple((word, _BOUND.get(word, word)) for word in get_args(WantedBind))),
    "distribution": (
        "Distribution",
        "",
        (
            ("cluster", "Default of the cluster"),
            ("block", "Fill one host after another"),
            ("cyclic", "One rank on each host in turn"),
        ),
    ),
    "profile": (
        "Inside MPI",
        "",
        (
            ("summary", "Record time, calls and messages"),
            ("trace", "Also record the last calls (trace)"),
            ("none", "Record nothing"),
        ),
    ),
}
_OF_EACH_RANK: Mapping[str, str] = {"scaling": SAME_WORK, "grows_with_hosts": "the work, with the ranks"}
"""The only choice of fields if each rank has the same work."""
_FIRST_BUDGET: Mapping[str, Any] = {"time": "30 min"}
"""Budget that the form proposes."""
_UNITS_OF_GOAL: Mapping[str, tuple[Dimension, str]] = {
    "goal.budget.time": (DURATION, "min"),
    "goal.matters": (FRACTION, "%"),
}
"""Kind of quantity and usual unit of the fields of a goal in which a bare number means another unit."""
_USUAL_LINK = 5
"""Link parameters at the top of the form."""
_LINK_CHOICES: dict[str, Choices] = {
    "topology": (("one site", "One site"), ("two sites", "Two sites"), ("star", "Star")),
    "distribution": (("uniform", "Uniform"), ("normal", "Normal")),
    "emulator": (
        ("auto", "Automatic"),
        ("netem", "In the kernel (netem)"),
        ("relay", "In a program (relay)"),
        ("nftables", "In the firewall, loss alone (nftables)"),
    ),
}
# Elements for errors of groups of fields.
_GROUPS = ("workload", "cluster", "sweep", "zip", "link")
_GROUP_LABELS: Mapping[str, str] = {
    "workload": "Workload",
    "cluster": "Cluster",
    "sweep": "Sweep",
    "zip": "Combine as",
    "link": "Link",
    "goal": "Goal",
    "goal.until": "Precision",
    "goal.budget": "Goal, limits",
    "ideal": "Ideal network",
}


def _with_reading(entry: Field, typed: Any) -> Field:
    """Return the field with what a typed number without a unit means."""
    dimension, unit = _UNITS_OF_GOAL.get(entry.path, (None, ""))
    if dimension is None or not isinstance(typed, str | int) or not is_bare(typed):
        return entry
    return replace(entry, warnings=(bare_note(entry.label, str(typed), dimension, unit),))


def _time_text(name: str, value: Any) -> Any:
    """Return a limit of the budget as users write it."""
    if name != "time" or isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return (
        f"{int(value // 60)} min"
        if value >= 60 and value % 60 == 0
        else f"{int(value) if value == int(value) else value} s"
    )


@dataclass(frozen=True)
class Form:
    """Contents of the form's template; `form.name` etc. come from `__getitem__`."""

    draft: Mapping[str, Any]
    errors: Mapping[str, Texts] = field(default_factory=dict)
    clusters: Sequence[Cluster] = ()

    def __getitem__(self, name: str) -> Field:
        label, hint, choices = _PLAIN[name]
        info = ExperimentSpec.model_fields[name]
        value = self.draft.get(name, info.default)
        text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
        if name == "repetitions":
            return self._repetitions(value, "at_least")
        if name == "time_limit_s" and isinstance(value, int | float):
            text = f"{int(value) if float(value).is_integer() else value} s"
        if name == "grows_with_hosts":
            choices = [
                ("", "nothing"),
                *((n, parameter_label(n, self.workload)) for n in self._mapping("sweep") if n != "hosts"),
            ]
        if name in _OF_EACH_RANK and self._has_same_work:
            choices = ((str(value or ""), _OF_EACH_RANK[name]),)
        if name == "control" and str(value) not in dict(choices):
            choices = (*choices, (str(value), f"{value} for each configuration"))
        if name == "deciding":
            choices = self._deciding_choices(str(value or ""))
        return self._field(name, label, text, hint=hint or info.description, choices=choices)

    def _repetitions(self, value: Any, bound: str) -> Field:
        """Return the field of ``at_least``, or of a goal's ``at_most``."""
        default = default_of(RepetitionRange, bound)
        number = value.get(bound, default) if isinstance(value, Mapping) else value if bound == "at_least" else default
        if bound == "at_most":
            return self._field("repetitions.at_most", "Most repetitions", number)
        entry = self._field("repetitions", "Repetitions", number)
        return replace(entry, errors=(*entry.errors, *self.errors.get("repetitions.at_least", ())))

    @property
    def goal(self) -> dict[str, Any]:
        """Return the fields of the goal; ``chosen`` is False for a fixed design."""
        values, chosen = self._mapping("goal"), self.draft.get("goal") is not None
        optimise, until = str(values.get("optimise") or ""), str(values.get("until") or ANSWERED)
        budget = values["budget"] if isinstance(values.get("budget"), Mapping) else {} if chosen else _FIRST_BUDGET
        matters = values.get("matters", default_of(Goal, "matters"))
        precision = "3 %" if until == ANSWERED else until
        errors = [text for path in ("goal", "goal.budget") for text in self.errors.get(path, ())]
        return {
            "chosen": chosen,
            "searches": "optimise" in values,
            "optimise": self._field(
                "goal.optimise",
                "Find the best",
                optimise or self._own_metric(),
                choices=self._deciding_choices(optimise)[1:],
            ),
            "is_answered": until == ANSWERED,
            "precision": replace(
                self._field(
                    "goal.precision", "Precision", precision, hint="An interval may reach this far to each side."
                ),
                errors=self.errors.get("goal.until", ()),
            ),
            "matters": _with_reading(
                self._field(
                    "goal.matters",
                    "Smallest difference that matters",
                    FRACTION.format(matters) if isinstance(matters, float) else matters,
                    hint="Results within it count as equal.",
                ),
                matters,
            ),
            "budget": [
                _with_reading(
                    self._field(f"goal.budget.{name}", label, _time_text(name, budget.get(name))), budget.get(name)
                )
                for name, label in (("time", "Time"), ("trials", "Trials"), ("host_hours", "Host hours"))
            ],
            "at_most": self._repetitions(self.draft.get("repetitions"), "at_most"),
            "errors": errors,
        }

    @property
    def _has_same_work(self) -> bool:
        """Return whether each rank has the same work, whatever the study is."""
        workload = workloads.find(self.workload, self._mapping("parameters"))
        return workload is not None and workload.work_grows

    def _own_metric(self) -> str:
        workload = workloads.find(self.workload, self._mapping("parameters"))
        return "" if workload is None else workload.decides

    def _deciding_choices(self, chosen: str) -> Choices:
        workload = workloads.find(self.workload, self._mapping("parameters"))
        if workload is None:
            return [("", "the workload's own"), *([(chosen, chosen)] if chosen else [])]
        metrics = deciding_choices(workload)
        own_metric = metrics[workload.decides].label.lower() if workload.decides in metrics else workload.decides
        offered = [(name, m.label) for name, m in metrics.items() if m.section == "run" or name in (*ENERGY, chosen)]
        unknown = [(chosen, f"{chosen} (unknown)")] if chosen and chosen not in metrics else []
        return [("", f"{own_metric}, default"), *offered, *unknown]

    def _mapping(self, name: str) -> Mapping[str, Any]:
        """Return a part of the draft, which YAML may fill with any type."""
        part = self.draft.get(name)
        return part if isinstance(part, Mapping) else {}

    def _field(self, path: str, label: str, value: Any, **more: Any) -> Field:
        text = json.dumps(value) if isinstance(value, list | dict) else "" if value is None else str(value)
        swept = path.removeprefix("parameters.") in self._mapping("sweep")
        return Field(path, label, text, errors=self.errors.get(path, ()), swept=swept, **more)

    @property
    def workload(self) -> str:
        return str(self.draft.get("workload", ""))

    @property
    def newer_version(self) -> dict[str, int] | None:
        """Return the chosen and the latest version of a registered program if they differ."""
        versions = workloads.program_versions(self.workload, self._mapping("parameters"))
        return versions if versions and versions["chosen"] < versions["latest"] else None

    @property
    def workload_fields(self) -> list[Field]:
        """Return the typed parameters of the chosen workload, with unit and help."""
        values, fields = self._mapping("parameters"), []
        for name, info in self._model_fields().items():
            value = values.get(name, None if info.is_required() else info.default)
            extra = info.json_schema_extra
            unit = str(extra.get("unit", "")) if isinstance(extra, Mapping) else ""
            label, hint = info.title or parameter_label(name), info.description or ""
            choices = [(str(choice), str(choice)) for choice in choices_of(info)]
            if choices and value is None:
                choices.insert(0, ("", "choose one"))
            elif choices and str(value) not in dict(choices):
                choices.append((str(value), f"{value} (unknown)"))
            fields.append(self._field(f"parameters.{name}", label, value, unit=unit, hint=hint, choices=choices))
        return fields

    def _model_fields(self) -> Mapping[str, Any]:
        workload = workloads.find(self.workload, self._mapping("parameters"))
        return {} if workload is None else workload.parameters_type.model_fields

    @property
    def cluster_fields(self) -> list[Field]:
        values = self._mapping("parameters")
        return [
            self._field(f"parameters.{name}", parameter_label(name), values.get(name, low))
            for name, (low, _) in CLUSTER_PARAMETERS.items()
        ]

    @property
    def cluster_field(self) -> Field:
        chosen = str(self.draft.get("cluster", default_of(ExperimentSpec, "cluster")))
        choices = [
            (
                c.slug,
                (c.name if c.name == c.get_kind_display() else f"{c.name} ({c.get_kind_display().lower()})")
                + ("" if c.enabled else ", switched off"),
            )
            for c in self.clusters
        ]
        # Browsers do not send a disabled option: the chosen one stays enabled, and is refused with its reason.
        disabled = [c.slug for c in self.clusters if not c.enabled and c.slug != chosen]
        if chosen not in {slug for slug, _ in choices}:
            choices.append((chosen, f"{chosen} (unknown)"))
        return replace(self._field("cluster", "Cluster", chosen, choices=choices), disabled=disabled)

    @property
    def without_link(self) -> str:
        """Return the clusters that make no link: the form hides its settings."""
        return " ".join(cluster.slug for cluster in self.clusters if not cluster.traits.emulates)

    @property
    def without_scheduler(self) -> str:
        return " ".join(cluster.slug for cluster in self.clusters if not cluster.traits.allots)

    @property
    def link_fields(self) -> list[Field]:
        """Return link values with their unit in the text, like the specification."""
        values = self._mapping("link")
        fields = []
        for path in LINK_PARAMETERS:
            name = path.removeprefix("link.")
            value = values.get(name, shown_default(path))
            if isinstance(value, int | float) and not isinstance(value, bool):
                value = shown_value(path, value)
            if isinstance(value, list):
                value = "; ".join(map(str, value))  # rates, because commas separate values of a sweep
            label = "Delay, one way" if name == "delay" else parameter_label(path)
            hint = Link.model_fields[name].description or ""
            entry = self._field(path, label, value, hint=hint, choices=_LINK_CHOICES.get(name, ()))
            is_odd = path in UNIT_EXAMPLES and isinstance(values.get(name), str) and is_bare(values[name])
            fields.append(replace(entry, warnings=(unit_note(path, values[name]),)) if is_odd else entry)
        return fields

    @property
    def has_link_options(self) -> bool:
        values = self._mapping("link")
        rare = LINK_PARAMETERS[_USUAL_LINK:]
        return "certificate" in self.draft or any(
            path.removeprefix("link.") in values or self.errors.get(path) for path in rare
        )

    @property
    def capture(self) -> dict[str, Any]:
        values = self._mapping("capture")
        snap_length = values.get("snap_length", default_of(Capture, "snap_length"))
        hint = Capture.model_fields["snap_length"].description or ""
        return {
            "enabled": values.get("enabled", True),
            "keep": values.get("keep", True),
            "snap_length": self._field("capture.snap_length", "Snap length", snap_length, unit="B", hint=hint),
        }

    @property
    def sweep_rows(self) -> list[SweepRow]:
        return [
            SweepRow.of(n, values, self.errors.get(f"sweep.{n}", ()), is_text=holds_text(self.draft, n))
            for n, values in self._mapping("sweep").items()
        ]

    @property
    def row_values(self) -> str:
        """Return the values of a new sweep row as JSON: by cluster, then by parameter."""
        of_workload = {
            name: ", ".join(map(str, choices_of(info) or [info.default]))
            for name, info in self._model_fields().items()
            if choices_of(info) or isinstance(info.default, int | float)
        }
        return json.dumps({cluster.slug: of_workload | row_values(cluster) for cluster in self.clusters})

    @property
    def empty_row(self) -> SweepRow:
        return SweepRow("ranks_per_host", "1, 2")

    @property
    def combine(self) -> str:
        """Return the combination of the sweep: matrix, zip (all together) or groups."""
        groups = self.draft.get("zip") or []
        if not groups:
            return "matrix"
        return "zip" if len(groups) == 1 and set(groups[0]) == set(self._mapping("sweep")) else "groups"

    @property
    def zip_groups(self) -> list[str]:
        return [",".join(group) for group in self.draft.get("zip") or []]

    @property
    def sweepable(self) -> Choices:
        """Return the parameters for a sweep: cluster, workload, link.

        Constants of the workload, such as the version of a program, cannot be swept.
        """
        workload = workloads.find(self.workload)
        fields = [name for name in self._model_fields() if workload is None or name not in workload.constants]
        names = list(dict.fromkeys([*CLUSTER_PARAMETERS, *LAUNCH_PARAMETERS, *fields, *LINK_PARAMETERS]))
        unknown = [name for name in self._mapping("sweep") if name not in names]
        return [(name, parameter_label(name, self.workload)) for name in [*names, *unknown]]

    @property
    def has_launch_options(self) -> bool:
        return any(self.draft.get(name) or self.errors.get(name) for name in LAUNCH_PARAMETERS)

    @property
    def has_study_options(self) -> bool:
        paths = ("where", "scaling", "grows_with_hosts", "deciding")
        return any(self.draft.get(path) or self.errors.get(path) for path in paths)

    @property
    def group_errors(self) -> dict[str, Texts]:
        """Return errors of groups of fields: workload, cluster, sweep, zip, link."""
        grouped = {name: list(self.errors.get(name, ())) for name in _GROUPS}
        for path, texts in self.errors.items():
            if path.startswith("zip."):
                grouped["zip"] += texts
        return {name: texts for name, texts in grouped.items() if texts}

    @property
    def all_errors(self) -> list[FieldError]:
        return [FieldError(path, text) for path, texts in self.errors.items() for text in texts]

    @property
    def labelled_errors(self) -> list[tuple[str, str]]:
        """Return every error with the label of its field."""
        labels = {**_GROUP_LABELS, **{entry.path: entry.label for entry in self._all_fields}}
        labels |= {f"sweep.{name}": f"Sweep, {label}" for name, label in self.sweepable}
        labels |= {path: labels["zip"] for path in self.errors if path.startswith("zip.")}
        return [(labels.get(error.path, error.path), error.message) for error in self.all_errors]

    @property
    def _all_fields(self) -> Iterator[Field]:
        """Yield every field with an error element of its own."""
        yield from (self[path] for path in _PLAIN if path != "ideal")
        yield from (*self.workload_fields, *self.cluster_fields, *self.link_fields, self.capture["snap_length"])
        goal = self.goal
        yield from (goal["optimise"], goal["precision"], goal["matters"], *goal["budget"], goal["at_most"])

    @property
    def error_places(self) -> Iterator[tuple[str, str, Texts]]:
        """Return every error element with tone and text, for out-of-band swaps."""
        for entry in self._all_fields:
            yield entry.error_place, entry.tone, entry.remarks
        yield "err-goal", "", self.goal["errors"]
        for name in _GROUPS:
            yield f"err-{name}", "", self.group_errors.get(name, ())
        for index, row in enumerate(self.sweep_rows):
            yield f"err-sweep-{index}", "", row.errors


def drop_filled_in(post: QueryDict, filled: Sequence[Form]) -> bool:
    """Remove values that the form had filled in; return whether the sweep is one.

    The goal stays, because it is a question of the user; hosts and ranks stay with a sweep of the user.
    """
    sweep = list(zip(post.getlist("sweep_name"), post.getlist("sweep_values"), strict=False))
    is_filled_in = any(sweep == [(row.name, row.values) for row in form.sweep_rows] for form in filled)
    stay = ("goal.",) if is_filled_in else ("goal.", "parameters.hosts", "parameters.ranks_per_host")
    for entry in (entry for form in filled for entry in form._all_fields):
        if not entry.path.startswith(stay) and post.get(entry.path, "").strip() == entry.value:
            post.pop(entry.path, None)
    return is_filled_in
