"""Alias of `check_cluster`, for one release."""

from dashboard.management.commands.check_cluster import Command

__all__ = ["Command"]
