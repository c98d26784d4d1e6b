"""Registers the kinds of this package for one test."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from experiments import cluster_kinds
from experiments.models import Cluster
from tests.new_kinds.cloud import Cloud
from tests.new_kinds.pods import Pods


def register(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (Cloud(), Pods()):
        monkeypatch.setitem(cluster_kinds._KINDS, kind.name, kind)
        launcher = import_module(f"tests.new_kinds.launchers.{kind.name}")
        monkeypatch.setitem(sys.modules, f"workers.launchers.{kind.name}", launcher)
    monkeypatch.setattr(Cluster._meta.get_field("kind"), "choices", cluster_kinds.choices())
