"""Resolve a figure's colour tokens and let plotly check every attribute of it."""

from typing import Any

import plotly.graph_objects as go


def resolved(value: Any) -> Any:
    if value in ("--seq", "--div"):
        return [[0, "#000000"], [1, "#ffffff"]]
    if isinstance(value, str) and value.startswith("--"):
        return "rgba(1,2,3,0.5)" if "/" in value else "#010203"
    if isinstance(value, dict):
        return {
            key: resolved(item) for key, item in value.items() if key != "bars"
        }  # words of our own, which plotly.js ignores
    if isinstance(value, list | tuple):
        return [resolved(item) for item in value]
    return value


def checked(figure: dict[str, Any]) -> go.Figure:
    """Return the figure as plotly reads it; ValueError at unknown attributes."""
    return go.Figure(resolved(figure))
