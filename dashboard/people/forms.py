"""Forms of people's pages: Django's, with the classes of the style sheet."""

from __future__ import annotations

from typing import Any

from django import forms


class StyledForm(forms.Form):
    """A form whose fields look like those of all pages."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            chooses = isinstance(field.widget, forms.Select)
            field.widget.attrs["class"] = "form-select" if chooses else "form-control"
