"""The input of the new-experiment form as a plain specification ("draft").

YAML and REST send the same; `experiments.specification.parse` validates it. Values keep their text, so that "100
Mbit/s" returns to the field and to the YAML as "100 Mbit/s".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import yaml
from django.http import QueryDict

from experiments import workloads
from experiments.common.quantities import DURATION, FRACTION
from experiments.common.stored_mappings import mapping_at
from experiments.errors import FieldError
from experiments.metrics import why_not_deciding
from experiments.specification import Capture, ExperimentSpec, Link, parse_yaml
from experiments.specification.fields import EACH
from experiments.specification.goal import ANSWERED, Budget, Goal, RepetitionRange
from experiments.specification.network_study import expanded
from experiments.specification.parameters import CLUSTER_PARAMETERS, LINK_PARAMETERS, canonical, display_value, is_text
from experiments.specification.ranges import expand_values
from experiments.specification.transport import as_swept, as_transport
from experiments.specification.yaml_lines import Dumper, YamlDocument, dump

_TEXTS = (
    *("name", "description", "workload", "cluster", "where", "scaling", "grows_with_hosts", "deciding"),
    *(
        "certificate",
        "transport",
        "bind",
        "distribution",
        "profile",
        "order",
        "time_limit_s",
        "allocation",
        "disturbed",
    ),
)
_NUMBERS = ("warmups", "control", "seed", "retries")


def is_from_yaml(post: QueryDict) -> bool:
    """Return True if the user edited the YAML after the form."""
    return post.get("source") == "yaml"


def posted_draft(post: QueryDict, *, max_trials: int) -> dict[str, Any]:
    """Return the specification of the YAML or of the form, whichever was edited last.

    Raise InvalidSpec, with lines, for YAML that is not a specification.
    """
    if not is_from_yaml(post):
        return draft_from_post(post)
    text = post.get("yaml", "")
    parse_yaml(text, max_trials=max_trials)
    return _in_words_of_the_form(expanded(YamlDocument(text).data))


def with_lines(text: str, errors: Sequence[FieldError]) -> list[FieldError]:
    """Return errors of valid YAML with the lines of their fields."""
    document = YamlDocument(text)
    return [replace(error, line=document.line(error.path)) for error in errors]


def _in_words_of_the_form(draft: dict[str, Any]) -> dict[str, Any]:
    """Return a valid draft with texts for transports, links and control runs."""
    if isinstance(link := draft.get("link"), Mapping):
        draft = {**draft, "link": {name: str(v) if _is_bare_number(v) else v for name, v in link.items()}}
    if isinstance(control := draft.get("control"), bool):
        draft = {**draft, "control": EACH if control else 0}
    if isinstance(draft.get("transport"), Mapping):
        draft = {**draft, "transport": as_transport(draft["transport"])}
    if "transport" in (sweep := draft.get("sweep") or {}):
        draft = {**draft, "sweep": {**sweep, "transport": as_swept(sweep["transport"])}}
    return draft


def _is_bare_number(value: Any) -> bool:
    """Return whether YAML has a number, without a unit: the form warns of its meaning."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def draft_from_post(post: QueryDict) -> dict[str, Any]:
    """Return the specification of the form, without fields with defaults."""
    draft: dict[str, Any] = {}
    for name in _TEXTS:
        _put(draft, name, post.get(name, "").strip(), default_of(ExperimentSpec, name))
    if draft.get("time_limit_s") == DURATION.format(default_of(ExperimentSpec, "time_limit_s")):
        del draft["time_limit_s"]
    for name in _NUMBERS:
        _put(draft, name, _typed(post.get(name, "").strip()), default_of(ExperimentSpec, name))
    _put_goal(draft, post)
    _put(draft, "tags", [tag.strip() for tag in post.get("tags", "").split(",") if tag.strip()], [])
    _put(draft, "ideal", "ideal" in post, False)
    draft.setdefault("name", "")
    sweep = _sweep_from_post(post)
    _put(draft, "parameters", _parameters_from_post(post, draft.get("workload", ""), sweep), {})
    _put(draft, "sweep", sweep, {})
    _put(draft, "zip", _zip_from_post(post, sweep), [])
    _put(draft, "link", _link_from_post(post, sweep), {})
    _put(draft, "capture", _capture_from_post(post), {})
    return draft


def _put_goal(draft: dict[str, Any], post: QueryDict) -> None:
    """Add the goal, and the repetitions as a number or a range."""
    at_least = _typed(post.get("repetitions", "").strip())
    kind = post.get("goal.kind")
    if kind not in ("until", "optimise"):
        _put(draft, "repetitions", at_least, default_of(ExperimentSpec, "repetitions"))
        return
    until = post.get("goal.until", ANSWERED)
    limits = {name: _typed(post.get(f"goal.budget.{name}", "").strip()) for name in Budget.model_fields}
    goal: dict[str, Any] = {"until": until if until == ANSWERED else post.get("goal.precision", "").strip()}
    if kind == "optimise":
        goal = {"optimise": post.get("goal.optimise", "").strip()}
    if until == ANSWERED or kind == "optimise":
        _put(goal, "matters", post.get("goal.matters", "").strip(), FRACTION.format(default_of(Goal, "matters")))
    draft["goal"] = {**goal, "budget": {name: limit for name, limit in limits.items() if limit != ""}}
    at_most = _typed(post.get("repetitions.at_most", "").strip())
    if at_most not in ("", default_of(RepetitionRange, "at_most")):
        draft["repetitions"] = {"at_least": at_least, "at_most": at_most}
    else:
        _put(draft, "repetitions", at_least, default_of(ExperimentSpec, "repetitions"))


def without_foreign_figures(draft: dict[str, Any]) -> dict[str, Any]:
    """Return the draft without the deciding metric of the previous workload."""
    workload = workloads.find(draft.get("workload", ""), draft.get("parameters"))
    goal = mapping_at(draft, "goal")
    if workload is not None and "optimise" in goal and why_not_deciding(str(goal["optimise"]), workload):
        draft = {**draft, "goal": {**goal, "optimise": workload.decides}}
    foreign = workload is not None and why_not_deciding(draft.get("deciding", ""), workload)
    return {name: value for name, value in draft.items() if name != "deciding" or not foreign}


def as_yaml(draft: Mapping[str, Any]) -> str:
    """Return the draft as YAML for `script/run`, in the order and units of the form."""
    ordered = {name: draft[name] for name in ExperimentSpec.model_fields if name in draft}
    if isinstance(draft.get("sweep"), Mapping):
        listed = {n: _listed(values, text=holds_text(draft, n)) for n, values in draft["sweep"].items()}
        ordered["sweep"] = {
            n: [_with_unit(n, value) for value in values] if isinstance(values, list) else values
            for n, values in listed.items()
        }
    if isinstance(draft.get("link"), Mapping):
        ordered["link"] = {name: _with_unit(f"link.{name}", value) for name, value in draft["link"].items()}
    rest = {name: value for name, value in draft.items() if name not in ordered}
    return dump(ordered | rest, _Dumper, width=88)


_WITH_UNITS: Final = ("link.bandwidth", "link.delay", "link.jitter", "link.loss", "link.queue", "link.tcp_buffer")


def _with_unit(name: str, value: Any) -> Any:
    """Return a number of the link as users write it, with its unit, if that is exact."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value or name not in _WITH_UNITS:
        return value
    try:
        words = display_value(name, value)
        return words if words != str(value) and canonical("", name, words) == value else value
    except (ValueError, ArithmeticError):  # not valid: the user sees it as entered
        return value


class _Dumper(Dumper):
    """Represent lists on one line, like swept values."""


def _flow_list(dumper: Dumper, values: list[Any]) -> yaml.Node:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=True)


_Dumper.add_representer(list, _flow_list)


def holds_text(draft: Mapping[str, Any], name: str) -> bool:
    """Return True if the values of a parameter are words."""
    constants = draft.get("parameters")
    return is_text(str(draft.get("workload", "")), name, constants if isinstance(constants, Mapping) else None)


def _listed(written: Any, *, text: bool) -> Any:
    if not isinstance(written, str) or (".." in written and not text):
        return written
    try:
        return expand_values(written, text=text)
    except ValueError:
        return written


def _put(target: dict[str, Any], name: str, value: Any, default: Any) -> None:
    if value not in ("", None) and value != default:
        target[name] = value


def default_of(part: type, name: str) -> Any:
    return part.model_fields[name].default  # type: ignore[attr-defined]


def _typed(text: str) -> Any:
    """Return a whole number if the text is one; otherwise the text for validation."""
    return int(text) if text.removeprefix("-").isdecimal() and len(text) < 20 else text


def _sweep_from_post(post: QueryDict) -> dict[str, Any]:
    rows = zip(post.getlist("sweep_name"), post.getlist("sweep_values"), strict=False)
    sweep: dict[str, Any] = {name: values.strip() for name, values in rows if name}
    if "explore" in post and "hosts" in sweep and _asks_for_the_answer(post):
        sweep["hosts"] = _explored(sweep["hosts"])
    return {name: as_swept(text) if name == "transport" else text for name, text in sweep.items()}


def _asks_for_the_answer(post: QueryDict) -> bool:
    return post.get("goal.kind") == "until" and post.get("goal.until", ANSWERED) == ANSWERED


def _explored(text: str) -> Any:
    """Return a range of sizes to choose from; validation refuses other lists and text."""
    try:
        sizes = sorted(expand_values(text))
        steps = {after - before for before, after in pairwise(sizes)} or {1}
    except (ValueError, TypeError):
        return text
    if len(steps) > 1:
        return {"choose": sizes, "explore": True}
    (step,) = steps
    return {"from": sizes[0], "to": sizes[-1], **({"step": step} if step != 1 else {}), "explore": True}


def _parameters_from_post(post: QueryDict, workload: str, sweep: Mapping[str, Any]) -> dict[str, Any]:
    registered = workloads.find(workload)
    if registered is None:
        return {}
    # The workload comes first: it defines the other parameters.
    constants = {name: text for name in registered.constants if (text := post.get(f"parameters.{name}", ""))}
    definition = {name: _constant(workload, name, text, {}) for name, text in constants.items()}
    fields = registered.bind(definition).parameters_type.model_fields
    parameters: dict[str, Any] = {}
    defaults = {name: info.default for name, info in fields.items()}
    defaults |= {name: low for name, (low, _) in CLUSTER_PARAMETERS.items()}
    for name, default in defaults.items():
        text = post.get(f"parameters.{name}", "").strip()
        if text and name not in sweep:
            # Name the version of a program even if it is the latest: later versions will follow.
            omitted = None if name in registered.pinned else default
            _put(parameters, name, _constant(workload, name, text, definition), omitted)
    return parameters


def _constant(workload: str, name: str, text: str, constants: Mapping[str, Any]) -> Any:
    value = text if is_text(workload, name, constants) else _typed(text)
    try:
        return canonical(workload, name, value, constants)
    except ValueError:
        return value


def _zip_from_post(post: QueryDict, sweep: Mapping[str, Any]) -> list[list[str]]:
    combine = post.get("combine", "matrix")
    if combine == "zip" and len(sweep) > 1:
        return [list(sweep)]
    if combine == "groups":  # groups that only YAML can express; unchanged
        groups = [group.split(",") for group in post.getlist("zip_group")]
        return [group for group in groups if all(name in sweep for name in group)]
    return []


def _link_from_post(post: QueryDict, sweep: Mapping[str, Any]) -> dict[str, Any]:
    link: dict[str, Any] = {}
    for path in LINK_PARAMETERS:
        name = path.removeprefix("link.")
        if path in sweep or path not in post:
            continue
        text = str(post[path]).strip()
        if name == "bandwidth" and not text:
            link[name] = None  # empty: unlimited
        elif text and text != shown_default(path):
            link[name] = _typed(text) if name in ("mtu", "loss_burst") else text
    return link


def shown_default(path: str) -> str:
    return shown_value(path, default_of(Link, path.removeprefix("link.")))


def shown_value(path: str, value: Any) -> str:
    if value is None:
        return ""
    return "0 ms" if value == 0 and path in ("link.delay", "link.jitter") else display_value(path, value)


def _capture_from_post(post: QueryDict) -> dict[str, Any]:
    capture: dict[str, Any] = {}
    if post.get("capture.enabled") == "off":
        capture["enabled"] = False
    snap_length = _typed(post.get("capture.snap_length", "").strip())
    _put(capture, "snap_length", snap_length, default_of(Capture, "snap_length"))
    if "capture.keep_shown" in post and "capture.keep" not in post:
        capture["keep"] = False
    return capture
