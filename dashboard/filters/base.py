"""Base class of list filters, and filters of several lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

import django_filters
from django import forms
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.forms.boundfield import BoundField
from django.http import QueryDict
from django.utils.http import urlencode
from drf_spectacular.utils import extend_schema_field

from dashboard.filters.fields import ConditionsFilter, DayInput, LazySelect, MetricOrder, MomentFilter, SearchInput
from experiments import workloads
from experiments.models import Cluster, Experiment, Measurement


class ListFilter(django_filters.FilterSet):  # type: ignore[misc]
    """The filters of a list; ``help_text`` is for the OpenAPI document."""

    drawn: ClassVar[tuple[str, ...]] = ()
    """Fields that the page always shows; others are shown if they have a value."""
    page_names: ClassVar[Mapping[str, str]] = {}
    """Filter -> its name in the query string of the page."""
    _is_page = False

    @classmethod
    def of_page(cls, params: QueryDict, among: QuerySet[Any]) -> Self:
        """Return the filters of a page's query string."""
        filters = cls(params, among)
        filters._is_page = True
        return filters

    def get_form_class(self) -> type[forms.Form]:
        form: type[forms.Form] = super().get_form_class()
        names = self.page_names if self._is_page else {}
        return type(form.__name__, (form,), {"add_prefix": lambda form, name: names.get(name, name)})

    @property
    def form(self) -> forms.Form:
        if not hasattr(self, "_form"):
            self._form = self.get_form_class()(self.data, auto_id="f-%s")
            for field in self._form.fields.values():
                _dress(field)
                if isinstance(field.widget, LazySelect):
                    field.widget.rows = self.queryset
        return self._form

    @property
    def matching(self) -> QuerySet[Any]:
        """The matching rows; none if a filter is invalid."""
        rows: QuerySet[Any] = self.qs if self.is_valid() else self.queryset.none()
        return rows

    @property
    def fields(self) -> list[BoundField]:
        """The fields that the page shows."""
        return [field for field in self.form if field.name in self.drawn or field.data not in (None, "", [])]

    @property
    def query(self) -> str:
        """The filters as a query string for other pages of the list."""
        names = [field.html_name for field in self.form]
        return urlencode([(name, text) for name in names for text in self.data.getlist(name) if text.strip()])


def _dress(field: forms.Field) -> None:
    """Set the classes and labels of a field's widget."""
    widget = field.widget
    is_check = isinstance(widget, forms.CheckboxInput | forms.CheckboxSelectMultiple)
    look = "form-check-input" if is_check else "form-select" if isinstance(widget, forms.Select) else "form-control"
    # A checkbox is inside its label.
    label = {} if is_check else {"aria-label": str(field.label)}
    widget.attrs = {"class": look, **label, **widget.attrs}
    if isinstance(widget, forms.TextInput) and not isinstance(widget, forms.DateInput):
        widget.attrs.setdefault("placeholder", str(field.label))


def with_text(experiments: QuerySet[Experiment], name: str, value: str) -> QuerySet[Experiment]:
    """Return the experiments with a text in name, slug or tag."""
    return experiments.filter(Q(name__icontains=value) | Q(slug__icontains=value) | Q(tags__icontains=value))


def of_workload(**options: Any) -> django_filters.ChoiceFilter:
    """Filter by workload."""
    options["choices"] = lambda: [(workload.slug, workload.title) for workload in workloads.registry()]
    return django_filters.ChoiceFilter(empty_label="Any workload", label="Workload", help_text="Workload.", **options)


def of_cluster() -> django_filters.CharFilter:
    """Filter by cluster."""
    widget = LazySelect("Any cluster", _clusters)
    return django_filters.CharFilter(field_name="cluster__slug", widget=widget, label="Cluster", help_text="Cluster.")


def _clusters(rows: QuerySet[Any]) -> list[tuple[str, str]]:
    """Return the clusters of this installation, and those of imports among the rows."""
    imported = Exists(rows.filter(cluster=OuterRef("pk")))
    return list(Cluster.objects.filter(Q(elsewhere=False) | imported).order_by("name").values_list("slug", "name"))


def of_project(field_name: str = "project__slug") -> django_filters.CharFilter:
    """Filter by project."""
    return django_filters.CharFilter(field_name=field_name, label="Project", help_text="Slug of the project.")


def of_owner(field_name: str = "owner__username") -> django_filters.CharFilter:
    """Filter by owner."""
    return django_filters.CharFilter(field_name=field_name, label="Owner", help_text="User name of the owner.")


def by_text(label: str, help_text: str, method: Any = with_text) -> django_filters.CharFilter:
    """Filter by words."""
    return django_filters.CharFilter(method=method, widget=SearchInput, label=label, help_text=help_text)


def by_conditions(
    placeholder: str, label: str, help_text: str, method: str = "filter_where", **options: Any
) -> ConditionsFilter:
    """Filter by conditions."""
    widget = forms.TextInput(attrs={"class": "form-control mono", "placeholder": placeholder})
    return ConditionsFilter(method=method, widget=widget, label=label, help_text=help_text, **options)


def by_choice(choices: Iterable[tuple[str, str]], label: str, help_text: str, **options: Any) -> Any:
    """Filter by any of several choices."""
    widget = forms.CheckboxSelectMultiple
    return django_filters.MultipleChoiceFilter(
        choices=list(choices), widget=widget, distinct=False, label=label, help_text=help_text, **options
    )


def of_scope() -> django_filters.ChoiceFilter:
    """Choose the traffic of the metrics of other filters; all rows match."""
    return django_filters.ChoiceFilter(
        method=lambda rows, name, value: rows,
        choices=Measurement.Scope.choices,
        empty_label=None,
        label="Traffic",
        help_text="Traffic of all metrics in the query: `all` by default, or `mpi`.",
    )


def ordered(fields: Mapping[str, str], rows: str) -> MetricOrder:
    """Order by fields, or by ``metric:NAME``."""
    described = extend_schema_field(
        {
            "type": "array",
            "items": {"type": "string", "pattern": f"^-?({'|'.join(fields.values())}|metric:.+)$"},
            "description": f"Order; - for descending. `metric:NAME` cannot be combined with another; {rows} without a value come last.",
        }
    )
    order: MetricOrder = described(MetricOrder(fields=fields, label="Order"))
    return order


def since(verb: str, **options: Any) -> MomentFilter:
    """Filter rows from a moment on."""
    options = {"lookup_expr": "gte", "widget": DayInput, "help_text": f"{verb} then or later (ISO 8601).", **options}
    return MomentFilter(label=f"{verb} on or after", **options)


def until(verb: str, **options: Any) -> MomentFilter:
    """Filter rows before a moment."""
    options = {"lookup_expr": "lt", "widget": DayInput, "help_text": f"{verb} earlier than that (ISO 8601).", **options}
    return MomentFilter(label=f"{verb} before", **options)
