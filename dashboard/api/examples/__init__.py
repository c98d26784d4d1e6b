"""Examples of requests and answers for the OpenAPI document, from JSON files.

``{"PUT experiments/{slug}/": {"request": {MEDIA TYPE: body}, "answers": {STATUS: body}}}``. The answer of a list is one of its
rows. A text as an answer names the operation with the same answer. Long lists and mappings are cut.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiExample

from dashboard.api.rest.schema import errors

ROOT: Final = "/api/v1/"
_JSON: Final = "application/json"


@cache
def all_examples() -> dict[str, Any]:
    """Return all examples by operation."""
    parts = (json.loads(file.read_text()) for file in sorted(Path(__file__).parent.glob("*.json")))
    return {operation: example for part in parts for operation, example in part.items()}


class WithExamples(AutoSchema):
    """Schema generator that adds the stored examples and default errors."""

    def get_examples(self) -> list[OpenApiExample]:
        stored = all_examples().get(f"{self.method} {self.path.removeprefix(ROOT)}", {})
        examples = [
            OpenApiExample("Request", value=body, media_type=media_type, request_only=True)
            for media_type, body in stored.get("request", {}).items()
        ]
        for status, body in stored.get("answers", {}).items():
            value = next(iter(all_examples()[body]["answers"].values())) if isinstance(body, str) else body
            examples.append(
                OpenApiExample("Answer", value=value, media_type=_JSON, response_only=True, status_codes=[status])
            )
        return examples

    def get_response_serializers(self) -> Any:
        """Describe lists and rows that declare no answers of their own."""
        return {
            200: super().get_response_serializers(),
            **errors(400 if getattr(self.view, "action", "") == "list" else 404),
        }
