"""Alias of `resume`, for one release."""

from dashboard.management.commands.resume import Command

__all__ = ["Command"]
