"""Rounds over REST."""

from __future__ import annotations
